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

// phase is the progress of a replacement.
type phase string

/*
 * What is on disk, and what the next Apply does with it, also after a crash:
 *
 *	          desired                    link is up
 *	 (none) ---------> replacing ---------------------> replaced
 *	   ^                   |  failed, or not desired any more |
 *	   |                   v                                  |
 *	   +------------- restoring <-----------------------------+
 *	   | not desired,      | after a failure
 *	   | or tried again    v
 *	   +---------------- failed
 */
const (
	replacing phase = "replacing"
	replaced  phase = "replaced"
	restoring phase = "restoring"
	failed    phase = "failed"
)

// replacement is a device with a replaced driver, or with one that was to be replaced.
type replacement struct {
	hardware
	Stock string `json:"stock"`
	Aware string `json:"aware"`
	Phase phase  `json:"phase"`
	// Before is the state of the interface before the last change of driver.
	Before snapshot `json:"before"`
	attempt
}

// Manager replaces drivers. Its methods are for one goroutine.
type Manager struct {
	// records by the device's address.
	records node.Records[replacement]
	sys     sysfs
	sysctls sysctls
	// now and waitLink are those of the machine except in tests.
	now      func() time.Time
	waitLink func(name string, longest time.Duration) error
}

// New makes a Manager that keeps its state in a file. State of another boot is void. sys is the path of a sysfs of
// the network namespace, and netSysctl that of its /proc/sys/net. Both are writable.
func New(path, bootID, sys, netSysctl string) *Manager {
	return &Manager{
		records: node.Records[replacement]{Path: path, BootID: bootID}, sys: sysfs(sys), sysctls: sysctls(netSysctl),
		now: time.Now, waitLink: waitLink,
	}
}

// Describe returns the facts of the interfaces' drivers for the plan, by interface name.
func (m *Manager) Describe() (map[string]plan.DriverFact, error) {
	links, err := node.Links()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	have, err := m.records.Load()
	if err != nil {
		return nil, err
	}
	facts := map[string]plan.DriverFact{}
	for _, link := range links {
		fact, name := m.sys.describe(link), link.Attrs().Name
		if h, err := m.sys.of(name); err == nil {
			if r, known := have[h.Address]; known {
				fact.Failed, fact.NextTry = r.Failure, r.NextTry
				if r.Phase == replaced && fact.Name == r.Aware {
					fact.Stock = r.Stock
				}
			}
		}
		facts[name] = fact
	}
	return facts, nil
}

// Apply binds the desired drivers, and restores the stock ones if none is desired any more. It may be called
// repeatedly. moved reports that the facts and the indexes of interfaces have changed. Apply waits for the links of
// desired interfaces. It undoes a failed replacement, and the facts contain the failure from then on. The error is
// about what could not be undone or recorded.
func (m *Manager) Apply(wanted map[string]plan.DesiredDriver) (moved bool, err error) {
	have, err := m.records.Load()
	if err != nil {
		return false, err
	}
	var errs []error
	for _, address := range slices.Sorted(maps.Keys(have)) {
		done, err := m.resume(have, address, wanted)
		moved = moved || done
		errs = append(errs, err)
	}
	for _, iface := range slices.Sorted(maps.Keys(wanted)) {
		done, err := m.start(have, iface, wanted[iface])
		moved = moved || done
		errs = append(errs, err)
	}
	return moved, errors.Join(append(errs, m.records.Save(have))...)
}

// start replaces the driver of an interface that has none of ours yet, or if an earlier try failed long enough ago.
func (m *Manager) start(have map[string]replacement, iface string, desired plan.DesiredDriver) (bool, error) {
	h, err := m.sys.of(iface)
	if err != nil {
		return false, fmt.Errorf("interface %s: %w", iface, err)
	}
	former, known := have[h.Address]
	if known && !(former.Phase == failed && former.due(m.now())) || m.sys.bound(h) == desired.Driver {
		return false, nil
	}
	r := replacement{hardware: h, Stock: m.sys.bound(h), Aware: desired.Driver, Phase: replacing, attempt: attempt{Tries: former.Tries}}
	if r.Before, err = m.snapshot(iface); err != nil {
		// Nothing was changed, so nothing must be restored.
		r.Phase = failed
		r.postpone(err, m.now())
		return true, m.note(have, r)
	}
	if err := m.note(have, r); err != nil {
		return false, err
	}
	return true, m.replace(have, r, desired.LinkTimeout)
}

// resume continues with a device that an earlier Apply began to change.
func (m *Manager) resume(have map[string]replacement, address string, wanted map[string]plan.DesiredDriver) (bool, error) {
	r := have[address]
	if _, err := os.Stat(m.sys.device(r.hardware)); err != nil {
		delete(have, address)
		return false, nil
	}
	desired, isDesired := m.desiredFor(r, wanted)
	switch {
	case r.Phase == replacing && isDesired:
		return true, m.replace(have, r, desired.LinkTimeout)
	case r.Phase == replaced && m.sys.bound(r.hardware) != r.Aware:
		return m.displaced(have, r, isDesired)
	case r.Phase == failed && !isDesired:
		delete(have, address)
		return false, nil
	case r.Phase == replaced && !isDesired:
		return true, m.revert(have, r)
	case r.Phase == replacing, r.Phase == restoring:
		return true, m.putBack(have, r)
	default:
		return false, nil
	}
}

// desiredFor finds the desired driver of a device by the present or the former name of its interface.
func (m *Manager) desiredFor(r replacement, wanted map[string]plan.DesiredDriver) (plan.DesiredDriver, bool) {
	names := append(m.sys.interfaces(r.hardware), r.Before.Name)
	desired, ok := wanted[names[0]]
	return desired, ok && desired.Driver == r.Aware
}

// replace binds the aware driver. If that fails, it restores the stock driver.
func (m *Manager) replace(have map[string]replacement, r replacement, linkTimeout time.Duration) error {
	slog.Info("Replace a driver", "interface", r.Before.Name, "device", r.Address, "from", r.Stock, "to", r.Aware)
	err := m.change(r, r.Aware)
	if err == nil && r.Before.Carrier {
		err = m.waitLink(r.Before.Name, linkTimeout)
	}
	if err == nil {
		r.Phase = replaced
		r.succeed()
		return m.note(have, r)
	}
	slog.Warn("A driver could not be replaced; the stock driver is restored", "interface", r.Before.Name, "driver", r.Aware, "error", err)
	r.Phase = restoring
	r.fail(err, m.now())
	if err := m.note(have, r); err != nil {
		return err
	}
	return m.putBack(have, r)
}

// displaced leaves a device with the driver that somebody else bound. While a driver is desired, this counts as a
// failed try, so that the two do not rebind the device for ever.
func (m *Manager) displaced(have map[string]replacement, r replacement, isDesired bool) (bool, error) {
	why := fmt.Errorf("somebody else gave it driver %q", m.sys.bound(r.hardware))
	slog.Warn("A device has lost its capture-aware driver", "device", r.Address, "why", why)
	if !isDesired {
		delete(have, r.Address)
		return false, nil
	}
	r.Phase = failed
	r.fail(why, m.now())
	return true, m.note(have, r)
}

// revert restores the stock driver if the aware one is no longer desired. The interface keeps its present settings.
func (m *Manager) revert(have map[string]replacement, r replacement) error {
	names := m.sys.interfaces(r.hardware)
	if len(names) > 0 {
		now, err := m.snapshot(names[0])
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

// putBack binds the stock driver. If it fails, the next Apply tries again.
func (m *Manager) putBack(have map[string]replacement, r replacement) error {
	slog.Info("Restore a stock driver", "interface", r.Before.Name, "device", r.Address, "driver", r.Stock)
	if err := m.change(r, r.Stock); err != nil {
		return fmt.Errorf("restore driver %s of %s (%s): %w", r.Stock, r.Before.Name, r.Address, err)
	}
	if r.Failure != "" {
		r.Phase = failed
		return m.note(have, r)
	}
	delete(have, r.Address)
	return m.records.Save(have)
}

// change binds a driver and restores the former state of its interface.
func (m *Manager) change(r replacement, driver string) error {
	if err := m.sys.bind(r.hardware, driver); err != nil {
		return err
	}
	name, err := m.sys.waitInterface(r.hardware)
	if err != nil {
		return err
	}
	return m.restore(r.Before, name)
}

func (m *Manager) note(have map[string]replacement, r replacement) error {
	have[r.Address] = r
	return m.records.Save(have)
}
