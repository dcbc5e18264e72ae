// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
)

// phase is how far a replacement is.
type phase string

/*
 * What is on disk, and what the next Apply makes of it, whoever died meanwhile:
 *
 *	          wished                     link is there
 *	 (none) ---------> replacing ---------------------> replaced
 *	   ^                   |  failed, or not wished any more  |
 *	   |                   v                                  |
 *	   +------------- restoring <-----------------------------+
 *	   | not wished        | after a failure
 *	   +---- failed <------+
 */
const (
	replacing phase = "replacing"
	replaced  phase = "replaced"
	restoring phase = "restoring"
	failed    phase = "failed"
)

// replacement is a device whose driver is, or was to be, another.
type replacement struct {
	hardware
	Stock string `json:"stock"`
	Aware string `json:"aware"`
	Phase phase  `json:"phase"`
	// Before is what the interface was like before the last change of driver.
	Before snapshot `json:"before"`
	// Failure is why the aware driver is not to be tried again.
	Failure string `json:"failure,omitempty"`
}

// record is the content of the state file.
type record struct {
	BootID string `json:"bootID"`
	// Devices by address.
	Devices map[string]replacement `json:"devices"`
}

// Manager replaces drivers. Its methods are for one goroutine.
type Manager struct {
	path   string
	bootID string
	sys    sysfs
}

// New makes a Manager that keeps its state in a file; state of another boot is void. sys is where a sysfs of the network
// namespace is mounted, writable.
func New(path, bootID, sys string) *Manager {
	return &Manager{path: path, bootID: bootID, sys: sysfs(sys)}
}

// Describe says what the plan must know of the interfaces' drivers, by interface name.
func (m *Manager) Describe() (map[string]plan.DriverFact, error) {
	links, err := node.Links()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	have, err := m.load()
	if err != nil {
		return nil, err
	}
	facts := map[string]plan.DriverFact{}
	for _, link := range links {
		fact, name := m.sys.describe(link), link.Attrs().Name
		if h, err := m.sys.of(name); err == nil {
			if r, known := have.Devices[h.Address]; known {
				fact.Failed = r.Failure
				if r.Phase == replaced && fact.Name == r.Aware {
					fact.Stock = r.Stock
				}
			}
		}
		facts[name] = fact
	}
	return facts, nil
}

// Apply gives the wished interfaces their drivers, and the others, if they have another by an earlier Apply, the former one.
// It may be called again and again. moved says that
// the facts, and the indexes of interfaces, are others now. The link of a wished
// interface is waited for. What cannot be had is put back, and is in the facts from then on; the error is for what could not
// be put back or noted.
func (m *Manager) Apply(wanted map[string]plan.DriverWish) (moved bool, err error) {
	have, err := m.load()
	if err != nil {
		return false, err
	}
	var errs []error
	for _, address := range slices.Sorted(maps.Keys(have.Devices)) {
		done, err := m.proceed(have, address, wanted)
		moved = moved || done
		errs = append(errs, err)
	}
	for _, iface := range slices.Sorted(maps.Keys(wanted)) {
		done, err := m.begin(have, iface, wanted[iface])
		moved = moved || done
		errs = append(errs, err)
	}
	return moved, errors.Join(append(errs, m.save(have))...)
}

// begin replaces the driver of an interface that has none of ours yet.
func (m *Manager) begin(have record, iface string, wish plan.DriverWish) (bool, error) {
	h, err := m.sys.of(iface)
	if err != nil {
		return false, fmt.Errorf("interface %s: %w", iface, err)
	}
	if _, known := have.Devices[h.Address]; known || m.sys.bound(h) == wish.Driver {
		return false, nil
	}
	r := replacement{hardware: h, Stock: m.sys.bound(h), Aware: wish.Driver, Phase: replacing}
	if r.Before, err = m.sys.snapshot(iface); err != nil {
		// Nothing was changed, and nothing is to be put back.
		r.Phase, r.Failure = failed, err.Error()
		return true, m.note(have, r)
	}
	if err := m.note(have, r); err != nil {
		return false, err
	}
	return true, m.replace(have, r, wish.LinkTimeout)
}

// proceed goes on with a device that was begun with.
func (m *Manager) proceed(have record, address string, wanted map[string]plan.DriverWish) (bool, error) {
	r := have.Devices[address]
	if _, err := os.Stat(m.sys.device(r.hardware)); err != nil {
		delete(have.Devices, address)
		return false, nil
	}
	wish, wished := m.wishFor(r, wanted)
	switch {
	case r.Phase == replacing && wished:
		return true, m.replace(have, r, wish.LinkTimeout)
	case r.Phase == replaced && m.sys.bound(r.hardware) != r.Aware:
		slog.Warn("Somebody else gave a device another driver", "device", address, "driver", m.sys.bound(r.hardware))
		delete(have.Devices, address)
		return false, nil
	case r.Phase == failed && !wished:
		delete(have.Devices, address)
		return false, nil
	case r.Phase == replaced && !wished:
		return true, m.leave(have, r)
	case r.Phase == replacing, r.Phase == restoring:
		return true, m.putBack(have, r)
	default:
		return false, nil
	}
}

// wishFor finds the wish for a device by the name of its interface, or by that which it had.
func (m *Manager) wishFor(r replacement, wanted map[string]plan.DriverWish) (plan.DriverWish, bool) {
	names := append(m.sys.interfaces(r.hardware), r.Before.Name)
	wish, ok := wanted[names[0]]
	return wish, ok && wish.Driver == r.Aware
}

// replace binds the aware driver, and goes back when that does not work.
func (m *Manager) replace(have record, r replacement, linkTimeout time.Duration) error {
	slog.Info("Replace a driver", "interface", r.Before.Name, "device", r.Address, "from", r.Stock, "to", r.Aware)
	err := m.change(r, r.Aware)
	if err == nil && r.Before.Carrier {
		err = waitLink(r.Before.Name, linkTimeout)
	}
	if err == nil {
		r.Phase = replaced
		return m.note(have, r)
	}
	slog.Warn("A driver could not be replaced; the former one is put back", "interface", r.Before.Name, "driver", r.Aware, "error", err)
	r.Phase, r.Failure = restoring, err.Error()
	if err := m.note(have, r); err != nil {
		return err
	}
	return m.putBack(have, r)
}

// leave puts the stock driver back where the aware one is not wished for any more, with what the interface has by now.
func (m *Manager) leave(have record, r replacement) error {
	names := m.sys.interfaces(r.hardware)
	if len(names) > 0 {
		now, err := m.sys.snapshot(names[0])
		if err != nil {
			return err
		}
		r.Before = now
	}
	r.Phase = restoring
	if err := m.note(have, r); err != nil {
		return err
	}
	return m.putBack(have, r)
}

// putBack binds the stock driver. It is tried again at the next Apply when it fails.
func (m *Manager) putBack(have record, r replacement) error {
	slog.Info("Put a driver back", "interface", r.Before.Name, "device", r.Address, "driver", r.Stock)
	if err := m.change(r, r.Stock); err != nil {
		return fmt.Errorf("put driver %s back to %s (%s): %w", r.Stock, r.Before.Name, r.Address, err)
	}
	if r.Failure != "" {
		r.Phase = failed
		return m.note(have, r)
	}
	delete(have.Devices, r.Address)
	return m.save(have)
}

// change binds a driver and gives its interface what the one before had.
func (m *Manager) change(r replacement, driver string) error {
	if err := m.sys.bind(r.hardware, driver); err != nil {
		return err
	}
	name, err := m.sys.waitInterface(r.hardware)
	if err != nil {
		return err
	}
	return m.sys.restore(r.Before, name)
}

func (m *Manager) load() (record, error) {
	var have record
	err := node.ReadJSON(m.path, &have)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return record{}, fmt.Errorf("read which drivers were replaced: %w", err)
	}
	if have.BootID != m.bootID || have.Devices == nil {
		have = record{BootID: m.bootID, Devices: map[string]replacement{}}
	}
	return have, nil
}

func (m *Manager) note(have record, r replacement) error {
	have.Devices[r.Address] = r
	return m.save(have)
}

func (m *Manager) save(have record) error {
	if len(have.Devices) == 0 {
		if err := os.Remove(m.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := node.WriteJSON(m.path, have); err != nil {
		return fmt.Errorf("note which drivers are replaced: %w", err)
	}
	return nil
}
