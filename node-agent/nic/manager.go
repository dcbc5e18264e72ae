// SPDX-License-Identifier: Apache-2.0

// Package nic sets network interfaces for capture, and sets them back. What an interface was like is on disk before it
// is changed, so that it is restored exactly, even by another process after a crash.
package nic

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
)

// offloads are the kernel's names of the features that merge received packets.
var offloads = []string{"rx-gro", "rx-lro", "rx-gro-hw"}

// original is what an interface was like before it was changed; what was not changed is not in it.
type original struct {
	// Index tells an interface from a later one of its name.
	Index int `json:"index"`
	// Features that were on and were turned off.
	Features []string `json:"features,omitempty"`
	// NotPromiscuous: it was not promiscuous and was made so.
	NotPromiscuous bool `json:"notPromiscuous,omitempty"`
	// Down: it was down and was brought up.
	Down bool `json:"down,omitempty"`
}

// record is the content of the state file.
type record struct {
	BootID     string              `json:"bootID"`
	Interfaces map[string]original `json:"interfaces"`
}

// Manager sets interfaces. Its methods are for one goroutine.
type Manager struct {
	path   string
	bootID string
	device device
}

// New makes a Manager that keeps its state in a file. State of another boot is void: a boot sets every NIC anew.
func New(path, bootID string) *Manager {
	return &Manager{path: path, bootID: bootID, device: kernelDevice{}}
}

// Apply sets the wanted interfaces and restores those that were wanted before and are not any more. It may be called
// again and again: what is as it shall be is not touched. The map has an entry for each interface, by name, that could
// not be set or restored.
func (m *Manager) Apply(wanted map[string]plan.NICSettings) (map[string]error, error) {
	have, err := m.load()
	if err != nil {
		return nil, err
	}
	failed := map[string]error{}
	for _, name := range slices.Sorted(maps.Keys(have.Interfaces)) {
		if _, keep := wanted[name]; keep {
			continue
		}
		if err := m.restore(name, have.Interfaces[name]); err != nil {
			failed[name] = err
			continue
		}
		delete(have.Interfaces, name)
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if err := m.set(have, name, wanted[name]); err != nil {
			failed[name] = err
		}
	}
	return failed, m.save(have)
}

// set brings one interface to what is wanted: first the record, then the change.
func (m *Manager) set(have record, name string, wanted plan.NICSettings) error {
	state, err := m.device.read(name)
	if err != nil {
		return err
	}
	before, known := have.Interfaces[name]
	if !known || before.Index != state.index {
		before = original{Index: state.index, Down: !state.up}
	}
	after := before
	after.Features = slices.Clone(before.Features)
	todo := decide(state, wanted, &after)
	if todo.nothing() {
		have.Interfaces[name] = after
		return nil
	}
	// Until the change is made, what it undoes is on record too.
	have.Interfaces[name] = before.union(after)
	if err := m.save(have); err != nil {
		return err
	}
	slog.Info("Set an interface for capture", "interface", name, "offloads off", todo.featuresOff, "features on", todo.featuresOn,
		"up", todo.up, "promiscuous", todo.promiscuous)
	if err := m.device.change(name, todo); err != nil {
		return err
	}
	have.Interfaces[name] = after
	return nil
}

// union is what either of two records of an interface says was changed.
func (o original) union(other original) original {
	o.Down = o.Down || other.Down
	o.NotPromiscuous = o.NotPromiscuous || other.NotPromiscuous
	o.Features = slices.Clone(o.Features)
	for _, feature := range other.Features {
		if !slices.Contains(o.Features, feature) {
			o.Features = append(o.Features, feature)
		}
	}
	return o
}

// decide compares an interface with what is wanted and notes in before what it was like. What a ring does not want any
// more while another still holds the interface goes back too. That a link is down by now says nothing of how it was.
func decide(state deviceState, wanted plan.NICSettings, before *original) deviceChange {
	var todo deviceChange
	if !state.up {
		todo.up = setOn
	}
	switch {
	case wanted.Promiscuous && !state.promiscuous:
		before.NotPromiscuous, todo.promiscuous = true, setOn
	case !wanted.Promiscuous && before.NotPromiscuous:
		before.NotPromiscuous, todo.promiscuous = false, setOff
	}
	if !wanted.DisableOffloads {
		todo.featuresOn, before.Features = before.Features, nil
		return todo
	}
	for _, feature := range offloads {
		if state.features[feature] {
			todo.featuresOff = append(todo.featuresOff, feature)
			if !slices.Contains(before.Features, feature) {
				before.Features = append(before.Features, feature)
			}
		}
	}
	return todo
}

// restore sets an interface back. One that is gone, or is another by now, needs nothing.
func (m *Manager) restore(name string, before original) error {
	state, err := m.device.read(name)
	if errors.Is(err, os.ErrNotExist) || (err == nil && state.index != before.Index) {
		return nil
	}
	if err != nil {
		return err
	}
	todo := deviceChange{featuresOn: before.Features}
	if before.NotPromiscuous {
		todo.promiscuous = setOff
	}
	if before.Down {
		todo.up = setOff
	}
	if todo.nothing() {
		return nil
	}
	slog.Info("Restore an interface", "interface", name, "features on", todo.featuresOn, "up", todo.up, "promiscuous", todo.promiscuous)
	return m.device.change(name, todo)
}

func (m *Manager) load() (record, error) {
	var have record
	err := node.ReadJSON(m.path, &have)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return record{}, fmt.Errorf("read the interfaces' original settings: %w", err)
	}
	if have.BootID != m.bootID || have.Interfaces == nil {
		have = record{BootID: m.bootID, Interfaces: map[string]original{}}
	}
	return have, nil
}

func (m *Manager) save(have record) error {
	if len(have.Interfaces) == 0 {
		if err := os.Remove(m.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := node.WriteJSON(m.path, have); err != nil {
		return fmt.Errorf("note the interfaces' original settings: %w", err)
	}
	return nil
}
