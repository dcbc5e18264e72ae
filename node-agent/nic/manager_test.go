// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/safchain/ethtool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/ringcap/ringcap/node-agent/plan"
)

// memoryDevice are interfaces in memory.
type memoryDevice struct {
	states  map[string]deviceState
	changes int
	fail    error
}

func (d *memoryDevice) read(name string) (deviceState, error) {
	state, ok := d.states[name]
	if !ok {
		return deviceState{}, fmt.Errorf("interface %s: %w", name, os.ErrNotExist)
	}
	return state, nil
}

func (d *memoryDevice) change(name string, todo deviceChange) error {
	d.changes++
	if d.fail != nil {
		return d.fail
	}
	state := d.states[name]
	state.features = maps.Clone(state.features)
	for _, f := range todo.featuresOff {
		state.features[f] = false
	}
	for _, f := range todo.featuresOn {
		state.features[f] = true
	}
	flipped := func(value bool, to switching) bool { return to == setOn || value && to != setOff }
	state.up, state.promiscuous = flipped(state.up, todo.up), flipped(state.promiscuous, todo.promiscuous)
	d.states[name] = state
	return nil
}

var (
	capturing = plan.NICSettings{DisableOffloads: true, Promiscuous: true}
	before    = deviceState{index: 2, features: map[string]bool{"rx-gro": true, "rx-lro": false, "rx-gro-hw": false}}
	during    = deviceState{index: 2, up: true, promiscuous: true, features: map[string]bool{"rx-gro": false, "rx-lro": false, "rx-gro-hw": false}}
)

func newManager(t *testing.T, boot string) (*Manager, *memoryDevice) {
	t.Helper()
	d := &memoryDevice{states: map[string]deviceState{"eth0": before}}
	return &Manager{path: filepath.Join(t.TempDir(), "run", "nic.json"), bootID: boot, device: d}, d
}

func apply(t *testing.T, m *Manager, wanted map[string]plan.NICSettings) {
	t.Helper()
	failed, err := m.Apply(wanted)
	require.NoError(t, err)
	require.Empty(t, failed)
}

func TestSetAndRestored(t *testing.T) {
	m, d := newManager(t, "boot")
	for range 3 {
		apply(t, m, map[string]plan.NICSettings{"eth0": capturing})
		assert.Equal(t, during, d.states["eth0"])
	}
	assert.Equal(t, 1, d.changes, "what is as it shall be is not touched")
	apply(t, m, nil)
	assert.Equal(t, before, d.states["eth0"])
	assert.NoFileExists(t, m.path)
	apply(t, m, nil)
	assert.Equal(t, 2, d.changes)
}

func TestRestoredByAnotherProcess(t *testing.T) {
	m, d := newManager(t, "boot")
	apply(t, m, map[string]plan.NICSettings{"eth0": capturing})
	next := &Manager{path: m.path, bootID: "boot", device: d}
	apply(t, next, map[string]plan.NICSettings{"eth0": capturing})
	apply(t, next, nil)
	assert.Equal(t, before, d.states["eth0"])
}

// A crash between the note and the change: the next process finds the original all the same.
func TestNotedBeforeItIsChanged(t *testing.T) {
	m, d := newManager(t, "boot")
	d.fail = errors.New("killed")
	failed, err := m.Apply(map[string]plan.NICSettings{"eth0": capturing})
	require.NoError(t, err)
	assert.Error(t, failed["eth0"])
	d.fail = nil
	apply(t, m, map[string]plan.NICSettings{"eth0": capturing})
	apply(t, m, nil)
	assert.Equal(t, before, d.states["eth0"])
}

func TestSettingsOfAnotherBootAreVoid(t *testing.T) {
	m, d := newManager(t, "boot 1")
	apply(t, m, map[string]plan.NICSettings{"eth0": capturing})
	next := &Manager{path: m.path, bootID: "boot 2", device: d}
	apply(t, next, nil)
	assert.Equal(t, during, d.states["eth0"])
}

func TestAnotherInterfaceOfTheNameIsLeftAlone(t *testing.T) {
	m, d := newManager(t, "boot")
	apply(t, m, map[string]plan.NICSettings{"eth0": capturing})
	other := deviceState{index: 9, features: map[string]bool{}}
	d.states["eth0"] = other
	apply(t, m, nil)
	assert.Equal(t, other, d.states["eth0"])
}

func TestAnInterfaceThatIsGoneNeedsNothing(t *testing.T) {
	m, d := newManager(t, "boot")
	apply(t, m, map[string]plan.NICSettings{"eth0": capturing})
	delete(d.states, "eth0")
	apply(t, m, nil)
	assert.NoFileExists(t, m.path)
}

// One of two rings goes: what only it asked for goes back.
func TestLessIsWanted(t *testing.T) {
	m, d := newManager(t, "boot")
	apply(t, m, map[string]plan.NICSettings{"eth0": capturing})
	apply(t, m, map[string]plan.NICSettings{"eth0": {}})
	want := before
	want.up = true
	assert.Equal(t, want, d.states["eth0"])
	apply(t, m, nil)
	assert.Equal(t, before, d.states["eth0"])
}

// Down for a moment while it is captured is not how it was.
func TestALinkThatBouncesIsNotTakenDown(t *testing.T) {
	m, d := newManager(t, "boot")
	was := before
	was.up = true
	d.states["eth0"] = was
	apply(t, m, map[string]plan.NICSettings{"eth0": capturing})
	bounced := d.states["eth0"]
	bounced.up = false
	d.states["eth0"] = bounced
	apply(t, m, map[string]plan.NICSettings{"eth0": capturing})
	assert.True(t, d.states["eth0"].up)
	apply(t, m, nil)
	assert.Equal(t, was, d.states["eth0"])
}

// A change back that fails is not forgotten.
func TestWhatCouldNotBePutBackIsTriedAgain(t *testing.T) {
	m, d := newManager(t, "boot")
	apply(t, m, map[string]plan.NICSettings{"eth0": capturing})
	d.fail = errors.New("busy")
	failed, err := m.Apply(map[string]plan.NICSettings{"eth0": {}})
	require.NoError(t, err)
	require.Error(t, failed["eth0"])
	d.fail = nil
	apply(t, m, map[string]plan.NICSettings{"eth0": {}})
	apply(t, m, nil)
	assert.Equal(t, before, d.states["eth0"])
}

func TestWhatWasThatWayStaysThatWay(t *testing.T) {
	m, d := newManager(t, "boot")
	d.states["eth0"] = during
	apply(t, m, map[string]plan.NICSettings{"eth0": capturing})
	apply(t, m, nil)
	assert.Equal(t, during, d.states["eth0"])
	assert.Zero(t, d.changes)
}

// The kernel's own interfaces, in a network namespace.
func TestKernelDevice(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes a network namespace")
	}
	runtime.LockOSThread()
	origin, err := netns.Get()
	require.NoError(t, err)
	own, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() {
		own.Close()
		if netns.Set(origin) == nil {
			runtime.UnlockOSThread()
		}
		origin.Close()
	})
	require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}))
	eth, err := ethtool.NewEthtool()
	require.NoError(t, err)
	defer eth.Close()
	require.NoError(t, eth.Change("a", map[string]bool{"rx-gro": true}))

	m := New(filepath.Join(t.TempDir(), "nic.json"), "boot")
	apply(t, m, map[string]plan.NICSettings{"a": capturing})
	state, err := m.device.read("a")
	require.NoError(t, err)
	assert.True(t, state.up)
	assert.True(t, state.promiscuous)
	assert.False(t, state.features["rx-gro"])
	apply(t, m, nil)
	state, err = m.device.read("a")
	require.NoError(t, err)
	assert.False(t, state.up)
	assert.False(t, state.promiscuous)
	assert.True(t, state.features["rx-gro"])
	_, err = m.device.read("none")
	assert.ErrorIs(t, err, os.ErrNotExist)
}
