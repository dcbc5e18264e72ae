// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
)

// memoryDevice is one interface in memory.
type memoryDevice struct {
	index    int
	hardware string
	gone     bool
	values   map[string]string
	writes   []string
	fail     error
	// round is what the driver makes of an rxRingSize.
	round map[string]string
}

func (d *memoryDevice) identify(name string) (int, string, error) {
	if d.gone {
		return 0, "", fmt.Errorf("interface %s: %w", name, os.ErrNotExist)
	}
	return d.index, d.hardware, nil
}

func (d *memoryDevice) tunable(name string, setting plan.Setting) tunable {
	when := stageDevice
	if name == linkName {
		when = stageLink
	}
	return tunable{
		name: name, setting: setting, stage: when, rounds: setting == plan.SettingRxRingSize,
		read: func(string) (string, error) {
			if value, ok := d.values[name]; ok {
				return value, nil
			}
			return "", fmt.Errorf("no such thing: %w", errNotSupported)
		},
		write: func(_, value string) error {
			d.writes = append(d.writes, name+"="+value)
			if d.fail != nil {
				return d.fail
			}
			if rounded, ok := d.round[value]; ok {
				value = rounded
			}
			d.values[name] = value
			return nil
		},
	}
}

func (d *memoryDevice) device() device {
	return device{identify: d.identify, newest: func() (int, error) { return d.index, nil }, tunables: []tunable{
		d.tunable(linkName, ""), d.tunable("promiscuous", plan.SettingPromiscuous), d.tunable("rxRingSize", plan.SettingRxRingSize),
		d.tunable("rx-gro", plan.SettingOffloads), d.tunable("rx-lro", plan.SettingOffloads), d.tunable("rss.hash", plan.SettingRSSHash),
	}}
}

var (
	capturing = plan.NICSettings{
		plan.SettingPromiscuous: {Value: on}, plan.SettingOffloads: {Value: off}, plan.SettingRxRingSize: {Value: "4096", Ring: "r"},
	}
	before = map[string]string{linkName: off, "promiscuous": off, "rxRingSize": "256", "rx-gro": on, "rx-lro": off}
	during = map[string]string{linkName: on, "promiscuous": on, "rxRingSize": "4096", "rx-gro": off, "rx-lro": off}
)

func newManager(t *testing.T, boot string) (*Manager, *memoryDevice) {
	t.Helper()
	d := &memoryDevice{index: 2, values: maps.Clone(before)}
	return &Manager{records: node.Records[original]{Path: filepath.Join(t.TempDir(), "run", "nic.json"), BootID: boot}, device: d.device()}, d
}

// apply sets eth0, or restores it where nothing is desired. Every setting must get its desired value.
func apply(t *testing.T, m *Manager, wanted ...plan.NICSettings) {
	t.Helper()
	for name, outcome := range tryApply(t, m, wanted...) {
		require.NoError(t, outcome.Err, name)
		for _, s := range outcome.Settings {
			require.Empty(t, s.Message, s.Setting)
		}
	}
}

func tryApply(t *testing.T, m *Manager, wanted ...plan.NICSettings) map[string]Outcome {
	t.Helper()
	all := map[string]plan.NICSettings{}
	for _, w := range wanted {
		all["eth0"] = w
	}
	outcomes, err := m.Apply(all)
	require.NoError(t, err)
	return outcomes
}

func TestSetAndRestored(t *testing.T) {
	m, d := newManager(t, "boot")
	for range 3 {
		apply(t, m, capturing)
		assert.Equal(t, during, d.values)
	}
	assert.Len(t, d.writes, 4, "a setting that is right is not touched")
	apply(t, m)
	assert.Equal(t, before, d.values)
	assert.NoFileExists(t, m.records.Path)
	assert.Equal(t, linkName+"=off", d.writes[len(d.writes)-1], "the link is set back last")
	apply(t, m)
	assert.Len(t, d.writes, 8)
}

func TestRestoredByAnotherProcess(t *testing.T) {
	m, d := newManager(t, "boot")
	apply(t, m, capturing)
	next := &Manager{records: m.records, device: d.device()}
	apply(t, next, capturing)
	apply(t, next)
	assert.Equal(t, before, d.values)
}

// A crash at any write: the next process finds the original all the same.
func TestNotedBeforeItIsChanged(t *testing.T) {
	for crash := range 4 {
		m, d := newManager(t, "boot")
		steps := d.device()
		for i, k := range steps.tunables {
			steps.tunables[i].write = func(dev, value string) error {
				if len(d.writes) == crash {
					panic("killed")
				}
				return k.write(dev, value)
			}
		}
		doomed := &Manager{records: m.records, device: steps}
		require.Panics(t, func() { _, _ = doomed.Apply(map[string]plan.NICSettings{"eth0": capturing}) })
		apply(t, m, capturing)
		assert.Equal(t, during, d.values)
		apply(t, m)
		assert.Equal(t, before, d.values, "killed at write %d", crash)
	}
}

func TestSettingsOfAnotherBootAreVoid(t *testing.T) {
	m, d := newManager(t, "boot 1")
	apply(t, m, capturing)
	next := &Manager{records: node.Records[original]{Path: m.records.Path, BootID: "boot 2"}, device: d.device()}
	apply(t, next)
	assert.Equal(t, during, d.values)
}

func TestAnotherInterfaceOfTheNameIsLeftAlone(t *testing.T) {
	m, d := newManager(t, "boot")
	apply(t, m, capturing)
	d.index = 9
	apply(t, m)
	assert.Equal(t, during, d.values)
	assert.NoFileExists(t, m.records.Path)
}

// An interface that is made while the agent runs is captured before its owner has brought it up.
func TestAnInterfaceMadeAMomentAgoIsLeftUp(t *testing.T) {
	m, d := newManager(t, "boot")
	apply(t, m, capturing)
	d.gone = true
	apply(t, m)
	d.gone, d.index, d.values = false, 9, maps.Clone(before)
	apply(t, m, capturing)
	next := &Manager{records: node.Records[original]{Path: m.records.Path, BootID: "boot"}, device: m.device}
	apply(t, next)
	want := maps.Clone(before)
	want[linkName] = on
	assert.Equal(t, want, d.values)
}

// The same hardware under another driver is the same interface, and its settings go back.
func TestAnotherDriverIsTheSameInterface(t *testing.T) {
	m, d := newManager(t, "boot")
	d.hardware = "0000:00:03.0"
	apply(t, m, capturing)
	d.index, d.values = 9, maps.Clone(during)
	apply(t, m, capturing)
	apply(t, m)
	assert.Equal(t, before, d.values)
}

func TestAnInterfaceThatIsGoneNeedsNothing(t *testing.T) {
	m, d := newManager(t, "boot")
	apply(t, m, capturing)
	d.gone = true
	apply(t, m)
	assert.NoFileExists(t, m.records.Path)
}

// One of two rings goes: what only it asked for goes back.
func TestLessIsWanted(t *testing.T) {
	m, d := newManager(t, "boot")
	apply(t, m, capturing)
	apply(t, m, plan.NICSettings{})
	want := maps.Clone(before)
	want[linkName] = on
	assert.Equal(t, want, d.values)
	apply(t, m)
	assert.Equal(t, before, d.values)
}

// Down for a moment while it is captured is not how it was.
func TestALinkThatBouncesIsNotTakenDown(t *testing.T) {
	m, d := newManager(t, "boot")
	d.values[linkName] = on
	was := maps.Clone(d.values)
	apply(t, m, capturing)
	d.values[linkName] = off
	apply(t, m, capturing)
	assert.Equal(t, on, d.values[linkName])
	apply(t, m)
	assert.Equal(t, was, d.values)
}

// A change back that fails is not forgotten.
func TestWhatCouldNotBePutBackIsTriedAgain(t *testing.T) {
	m, d := newManager(t, "boot")
	apply(t, m, capturing)
	d.fail = errors.New("busy")
	require.Error(t, tryApply(t, m, plan.NICSettings{})["eth0"].Err)
	require.Error(t, tryApply(t, m)["eth0"].Err)
	d.fail = nil
	apply(t, m)
	assert.Equal(t, before, d.values)
}

func TestWhatWasThatWayStaysThatWay(t *testing.T) {
	m, d := newManager(t, "boot")
	d.values = maps.Clone(during)
	apply(t, m, capturing)
	apply(t, m)
	assert.Equal(t, during, d.values)
	assert.Empty(t, d.writes)
}

// A driver that rounds is told once, and what it made of it is reported.
func TestRounded(t *testing.T) {
	m, d := newManager(t, "boot")
	d.round = map[string]string{"1000": "1024"}
	desired := plan.NICSettings{plan.SettingRxRingSize: {Value: "1000", Ring: "r"}}
	for range 3 {
		outcome := tryApply(t, m, desired)["eth0"]
		assert.Equal(t, []SettingState{{Setting: plan.SettingRxRingSize, Desired: desired[plan.SettingRxRingSize], Actual: "1024"}}, outcome.Settings)
	}
	assert.Equal(t, []string{"link=on", "rxRingSize=1000"}, d.writes)
	apply(t, m, plan.NICSettings{plan.SettingRxRingSize: {Value: "2048"}})
	assert.Equal(t, "2048", d.values["rxRingSize"])
	apply(t, m)
	assert.Equal(t, before, d.values)
}

// What a driver cannot do is a reason, and keeps nothing else from being set.
func TestNotSupported(t *testing.T) {
	m, d := newManager(t, "boot")
	d.round = map[string]string{off: on}
	outcome := tryApply(t, m, plan.NICSettings{
		plan.SettingRSSHash: {Value: "Symmetric"}, plan.SettingOffloads: {Value: off}, plan.SettingRxRingSize: {Value: "512"},
	})["eth0"]
	require.NoError(t, outcome.Err)
	require.Len(t, outcome.Settings, 3)
	assert.Empty(t, outcome.Settings[0].Problem)
	assert.Equal(t, ProblemNotSupported, outcome.Settings[1].Problem)
	assert.Equal(t, "rx-gro=on rx-lro=off", outcome.Settings[1].Actual)
	assert.Contains(t, outcome.Settings[1].Message, "rx-gro: its driver keeps it on")
	assert.Equal(t, ProblemNotSupported, outcome.Settings[2].Problem)
	d.round = nil
	apply(t, m)
	assert.Equal(t, before, d.values)
}
