// SPDX-License-Identifier: Apache-2.0

// Package nic sets network interfaces for capture, and restores them. It saves the state of an interface to disk
// before a change. So even another process can restore it exactly after a crash.
package nic

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
)

// device is a Manager's access to interfaces.
type device struct {
	// identify returns the index and the hardware's address, which is empty for software interfaces. The error is
	// os.ErrNotExist (wrapped) if the interface does not exist.
	identify func(name string) (index int, hardware string, err error)
	// newest returns the highest index of all interfaces. The kernel counts indices up, so a higher index means an
	// interface that was made since.
	newest func() (int, error)
	// tunables in the order in which they are set.
	tunables []tunable
}

// Manager sets interfaces. Its methods are for one goroutine.
type Manager struct {
	records node.Records[original]
	device  device
	// newest is the highest index at the last call of Apply; 0 before.
	newest int
}

// New makes a Manager that keeps its state in a file. State of another boot is void, because a boot resets every NIC.
// sys is the path of a sysfs of the network namespace.
func New(path, bootID, sys string) *Manager {
	return &Manager{records: node.Records[original]{Path: path, BootID: bootID}, device: device{
		identify: identifyIn(sys), newest: newestLink, tunables: kernelTunables(sys),
	}}
}

// identifyIn returns a function that identifies interfaces by their hardware in a sysfs.
func identifyIn(sys string) func(string) (int, string, error) {
	return func(name string) (int, string, error) {
		link, err := findLink(name)
		if err != nil {
			return 0, "", err
		}
		return link.Attrs().Index, node.LinkedName(filepath.Join(sys, "class", "net", name, "device")), nil
	}
}

// Apply sets the wanted interfaces, and restores those that are no longer wanted. It may be called repeatedly: it
// does not touch a setting that is already right. The map has an entry for each wanted interface, by name, and for
// each that could not be restored.
func (m *Manager) Apply(wanted map[string]plan.NICSettings) (map[string]Outcome, error) {
	have, err := m.records.Load()
	if err != nil {
		return nil, err
	}
	outcomes := map[string]Outcome{}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, keep := wanted[name]; keep {
			continue
		}
		if err := m.restore(have, name); err != nil {
			outcomes[name] = Outcome{Err: err}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		outcomes[name] = m.set(have, name, wanted[name])
	}
	newest, err := m.device.newest()
	m.newest = max(m.newest, newest)
	return outcomes, errors.Join(err, m.records.Save(have))
}

// set applies the desired settings to one interface.
func (m *Manager) set(have map[string]original, name string, wanted plan.NICSettings) Outcome {
	index, hardware, err := m.device.identify(name)
	if err != nil {
		return Outcome{Err: err}
	}
	is, known := have[name]
	if !known || !is.same(index, hardware) {
		is = original{Values: map[string]string{}}
		if m.newest > 0 && index > m.newest {
			// It was just made, and its owner may not have brought it up yet. So it is not left down.
			is.Values[linkName] = on
		}
	}
	is.Index, is.Device = index, hardware
	if is.Settled == nil {
		is.Settled = map[string]settled{}
	}
	have[name] = is
	outcome := Outcome{Err: m.putBack(have, name, func(t tunable) bool { return t.stage != stageLink && !m.isDesired(t, wanted) })}
	for _, t := range m.device.tunables {
		desired, ok := wanted[t.setting]
		if t.name == linkName {
			desired, ok = plan.Desired{Value: on}, true
		}
		if !ok {
			continue
		}
		actual, err := m.tune(have, name, t, desired.Value)
		if t.name == linkName {
			outcome.Err = errors.Join(outcome.Err, err)
			continue
		}
		outcome.note(t, desired, actual, err)
	}
	return outcome
}

// isDesired reports whether a ring sets a tunable, or one that disturbs it. In the second case, the saved value was
// for another number of queues.
func (m *Manager) isDesired(t tunable, wanted plan.NICSettings) bool {
	return slices.ContainsFunc(m.device.tunables, func(other tunable) bool {
		_, desired := wanted[other.setting]
		return desired && (other.name == t.name || slices.Contains(other.disturbs, t.name))
	})
}

// tune sets one tunable to the desired value. It saves the old value before the change. It always saves a link's
// state, because the present state does not tell the former one.
func (m *Manager) tune(have map[string]original, name string, t tunable, desired string) (string, error) {
	is := have[name]
	target, err := t.target(name, desired)
	if err != nil {
		return "", err
	}
	value, err := t.read(name)
	if err != nil {
		return "", err
	}
	_, noted := is.Values[t.name]
	answered := is.Settled[t.name] == settled{Wanted: target, Actual: value}
	if !noted && (value != target && !answered || t.stage == stageLink) {
		m.noteValues(is, name, t, value)
		if err := m.records.Save(have); err != nil {
			return value, err
		}
	}
	if value == target || answered {
		return value, t.judge(target, value)
	}
	slog.Info("Set an interface for capture", "interface", name, "what", t.name, "from", value, "to", target)
	err = t.write(name, target)
	actual := value
	if err == nil {
		actual, err = t.read(name)
	}
	delete(is.Settled, t.name)
	if err == nil && actual != target {
		is.Settled[t.name] = settled{Wanted: target, Actual: actual}
		err = t.judge(target, actual)
	}
	if !noted && actual == value && errors.Is(err, errNotSupported) {
		// A setting that the driver refused was not changed.
		delete(is.Values, t.name)
	}
	return actual, err
}

// noteValues saves the value of a tunable, and the values of those that it disturbs.
func (m *Manager) noteValues(is original, name string, t tunable, value string) {
	is.Values[t.name] = value
	for _, other := range m.device.tunables {
		if _, noted := is.Values[other.name]; noted || !slices.Contains(t.disturbs, other.name) {
			continue
		}
		if value, err := other.read(name); err == nil {
			is.Values[other.name] = value
		}
	}
}

// restore restores an interface. An interface that is gone, or that another has replaced, needs nothing.
func (m *Manager) restore(have map[string]original, name string) error {
	index, hardware, err := m.device.identify(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	case have[name].same(index, hardware):
		if err := m.putBack(have, name, func(tunable) bool { return true }); err != nil {
			return err
		}
	}
	delete(have, name)
	return nil
}

// putBack writes the saved values of some tunables. It removes the records of those that it could write.
func (m *Manager) putBack(have map[string]original, name string, selected func(tunable) bool) error {
	is := have[name]
	var errs []error
	for _, t := range backwards(m.device.tunables) {
		value, noted := is.Values[t.name]
		if !noted || !selected(t) {
			continue
		}
		now, err := t.read(name)
		if err == nil && now != value {
			slog.Info("Restore an interface", "interface", name, "what", t.name, "from", now, "to", value)
			err = t.write(name, value)
		}
		if err != nil && !errors.Is(err, errNotSupported) {
			errs = append(errs, err)
			continue
		}
		delete(is.Values, t.name)
		delete(is.Settled, t.name)
	}
	return errors.Join(errs...)
}
