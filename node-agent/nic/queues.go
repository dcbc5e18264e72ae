// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/plan"
)

// rxQueuesTunable is the setting of ethtool -L: combined queues if the driver has them, else receive queues.
func rxQueuesTunable() tunable {
	return tunable{
		name: "rxQueues", setting: plan.SettingRxQueues, stage: stageDevice, disturbs: []string{rssQueuesName},
		resolve: func(dev, desired string) (string, error) {
			c, err := readRxQueues(dev)
			if err != nil {
				return "", err
			}
			return within(desired, max(c.MaxCombined, c.MaxRx), "RX queues")
		},
		read: func(dev string) (string, error) {
			c, err := readRxQueues(dev)
			return strconv.Itoa(rxQueues(c)), err
		},
		write: func(dev, value string) error {
			c, err := readRxQueues(dev)
			if err != nil {
				return err
			}
			n, err := strconv.ParseUint(value, 10, 32)
			if err != nil {
				return err
			}
			if c.MaxCombined > 0 {
				c.CombinedCount = uint32(n)
			} else {
				c.RxCount = uint32(n)
			}
			return refused(setRxQueues(dev, c))
		},
	}
}

// setRxQueues resets a table of RX queues that an administrator set, because the kernel keeps all queues that such a
// table names. The table is saved before: see disturbs.
func setRxQueues(dev string, c ethtool.Channels) error {
	set := func() error {
		return withEthtool(func(e *ethtool.Ethtool) error { _, err := e.SetChannels(dev, c); return err })
	}
	err := set()
	if errors.Is(err, unix.EINVAL) && writeRSS(dev, nil, resetTable, nil) == nil {
		err = set()
	}
	return err
}

func rxQueues(c ethtool.Channels) int { return int(c.CombinedCount + c.RxCount) }

func readRxQueues(dev string) (c ethtool.Channels, err error) {
	err = withEthtool(func(e *ethtool.Ethtool) error { c, err = e.GetChannels(dev); return err })
	if err == nil && c.MaxCombined+c.MaxRx == 0 {
		return c, fmt.Errorf("its driver has one RX queue only: %w", errNotSupported)
	}
	return c, unsupported(err)
}

// rxRingSizeTunable is the setting of ethtool -G rx. Drivers may round it.
func rxRingSizeTunable() tunable {
	return tunable{
		name: "rxRingSize", setting: plan.SettingRxRingSize, stage: stageDevice, rounds: true,
		resolve: func(dev, desired string) (string, error) {
			r, err := readRing(dev)
			if err != nil {
				return "", err
			}
			return within(desired, r.RxMaxPending, "descriptors")
		},
		read: func(dev string) (string, error) {
			r, err := readRing(dev)
			return strconv.Itoa(int(r.RxPending)), err
		},
		write: func(dev, value string) error {
			r, err := readRing(dev)
			if err != nil {
				return err
			}
			n, err := strconv.ParseUint(value, 10, 32)
			if err != nil {
				return err
			}
			r.RxPending = uint32(n)
			return refused(withEthtool(func(e *ethtool.Ethtool) error { _, err := e.SetRing(dev, r); return err }))
		},
	}
}

func readRing(dev string) (r ethtool.Ring, err error) {
	err = withEthtool(func(e *ethtool.Ethtool) error { r, err = e.GetRing(dev); return err })
	if err == nil && r.RxMaxPending == 0 {
		return r, fmt.Errorf("its driver's RX ring has one size only: %w", errNotSupported)
	}
	return r, unsupported(err)
}

// within checks a number against the greatest that the device supports.
func within(desired string, limit uint32, what string) (string, error) {
	n, err := strconv.ParseUint(desired, 10, 32)
	if err != nil || n < 1 || n > uint64(limit) {
		return "", fmt.Errorf("it can have 1 to %d %s: %w", limit, what, errOutOfRange)
	}
	return desired, nil
}
