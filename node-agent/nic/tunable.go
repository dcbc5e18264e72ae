// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/plan"
)

// The values of tunables that are on or off.
const (
	on  = "on"
	off = "off"
)

// errNotSupported and errOutOfRange are the reasons why a device can never have a desired value.
var (
	errNotSupported = errors.New("not supported")
	errOutOfRange   = errors.New("out of range")
)

// tunable is a property of an interface that can be read and written as text. A text that read returned can be
// written.
type tunable struct {
	// name in the state file.
	name string
	// setting that it belongs to; several tunables may serve one.
	setting plan.Setting
	// resolve turns a desired value into the text to write on this device. If it is nil, this is the value itself.
	resolve func(dev, desired string) (string, error)
	read    func(dev string) (string, error)
	write   func(dev, value string) error
	// stage is when it is set: early stages first. Stages are restored in the opposite order, but tunables within one
	// in the same order.
	stage stage
	// disturbs lists tunables that drivers reset with this one. Their values are saved before this one is set.
	disturbs []string
	// rounds means that drivers use the next value that they support.
	rounds bool
}

// stage is a time at which tunables are set. The link comes up first and goes down last. Threads exist only while
// polling is threaded.
type stage int

const (
	stageLink stage = iota
	stageDevice
	stageThreads
	stagePlacement
)

// judge returns an error if a device kept another value than the target.
func (t tunable) judge(target, actual string) error {
	if actual == target || t.rounds {
		return nil
	}
	return keptError{actual}
}

// target returns what to write for a desired value.
func (t tunable) target(dev, desired string) (string, error) {
	if t.resolve == nil {
		return desired, nil
	}
	return t.resolve(dev, desired)
}

// kernelTunables returns the tunables of the current network namespace's interfaces, in the order in which they are
// set. Queues come before what they disturb.
func kernelTunables(sys string) []tunable {
	tunables := []tunable{linkTunable(), promiscuousTunable(), rxQueuesTunable(), rxRingSizeTunable()}
	for _, feature := range mergingFeatures {
		tunables = append(tunables, featureTunable(feature, plan.SettingOffloads))
	}
	tunables = append(tunables, featureTunable("rx-vlan-hw-parse", plan.SettingVLANOffload))
	return append(tunables, rssQueuesTunable(), rssHashTunable(), rssFieldsTunable(), threadedTunable(sys), pollingCPUsTunable(sys))
}

// backwards returns tunables in the order in which they are restored.
func backwards(tunables []tunable) []tunable {
	return slices.SortedStableFunc(slices.Values(tunables), func(x, y tunable) int { return int(y.stage - x.stage) })
}

// unsupported marks the error of a driver that lacks a setting.
func unsupported(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("its driver cannot do that: %w", errNotSupported)
	}
	return err
}

// refused is unsupported for writes. Drivers return EINVAL for values that they do not support.
func refused(err error) error {
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("its driver does not take this value (%w): %w", err, errNotSupported)
	}
	return unsupported(err)
}

// pairs formats a map as "key=value" with spaces, sorted.
func pairs(values map[string]string) string {
	words := make([]string, 0, len(values))
	for key, value := range values {
		words = append(words, key+"="+value)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func parsePairs(text string) map[string]string {
	values := map[string]string{}
	for _, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		values[key] = value
	}
	return values
}
