// SPDX-License-Identifier: Apache-2.0

// Package driver replaces the drivers of single NICs by capture-aware ones, and restores the former ones. The
// interface keeps its name, addresses, routes and settings. Its former state is on disk before anything changes.
// \ An aware driver is a module of its own, with its own name on the bus (igb_ringcap beside igb). The module loader
// has loaded it. This package only unbinds a device from one driver and binds it to the other, by sysfs, one device
// at a time. So it does not touch other ports of the same driver, and needs no right to load modules.
package driver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ringcap/ringcap/node-agent/node"
)

// Suffix follows a stock driver's name in the name of the aware driver that is built from its source.
const Suffix = "_ringcap"

// hardware is the device of an interface.
type hardware struct {
	Bus string `json:"bus"`
	// Address on the bus, such as 0000:00:04.0.
	Address string `json:"address"`
}

// sysfs is the path of a writable sysfs.
type sysfs string

// of finds the hardware of an interface. The error is os.ErrNotExist (wrapped) for a software interface.
func (s sysfs) of(iface string) (hardware, error) {
	device := s.path("class", "net", iface, "device")
	h := hardware{Bus: node.LinkedName(filepath.Join(device, "subsystem")), Address: node.LinkedName(device)}
	if h.Bus == "" || h.Address == "" {
		return hardware{}, fmt.Errorf("%s is no device on a bus: %w", iface, os.ErrNotExist)
	}
	return h, nil
}

func (s sysfs) path(parts ...string) string {
	return filepath.Join(append([]string{string(s)}, parts...)...)
}

func (s sysfs) device(h hardware, parts ...string) string {
	return s.path(append([]string{"bus", h.Bus, "devices", h.Address}, parts...)...)
}

// bound returns the driver of a device; empty if it has none.
func (s sysfs) bound(h hardware) string { return node.LinkedName(s.device(h, "driver")) }

// loaded reports whether a bus has a driver of that name.
func (s sysfs) loaded(bus, driver string) bool {
	_, err := os.Stat(s.path("bus", bus, "drivers", driver, "bind"))
	return err == nil
}

// bind binds a device to a driver. If the device has another driver, it first unbinds that one.
func (s sysfs) bind(h hardware, driver string) error {
	have := s.bound(h)
	if have == driver {
		return nil
	}
	if !s.loaded(h.Bus, driver) {
		return fmt.Errorf("driver %s is not loaded", driver)
	}
	if have != "" {
		if err := s.write(h, have, "unbind"); err != nil {
			return err
		}
	}
	return s.write(h, driver, "bind")
}

func (s sysfs) write(h hardware, driver, what string) error {
	file, err := os.OpenFile(s.path("bus", h.Bus, "drivers", driver, what), os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString(h.Address)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("%s %s: driver %s: %w", what, h.Address, driver, err)
	}
	return nil
}

// interfaces returns the names of a device's interfaces.
func (s sysfs) interfaces(h hardware) []string {
	entries, _ := os.ReadDir(s.device(h, "net"))
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// waitInterface waits for the interface that a driver makes for a device.
func (s sysfs) waitInterface(h hardware) (string, error) {
	const longest, pause = 10 * time.Second, 20 * time.Millisecond
	for start := time.Now(); time.Since(start) < longest; time.Sleep(pause) {
		if names := s.interfaces(h); len(names) > 0 {
			return names[0], nil
		}
	}
	return "", fmt.Errorf("driver %s made no interface of %s", s.bound(h), h.Address)
}

// aware reports whether the module of a driver, or of a software interface's kind, uses ringcap's interface for
// drivers.
func (s sysfs) aware(iface, kind string) bool {
	module := cmp.Or(node.LinkedName(s.path("class", "net", iface, "device", "driver", "module")), kind)
	for _, name := range []string{module, module + Suffix} {
		if _, err := os.Lstat(s.path("module", "ringcap_driver", "holders", name)); module != "" && err == nil {
			return true
		}
		if s.hasHardware(iface) {
			break
		}
	}
	return false
}

func (s sysfs) hasHardware(iface string) bool {
	_, err := os.Stat(s.path("class", "net", iface, "device"))
	return err == nil
}

// virtualFunctions reports whether a device has any. They would be removed with its driver.
func (s sysfs) virtualFunctions(h hardware) bool {
	text, err := os.ReadFile(s.device(h, "sriov_numvfs"))
	return err == nil && strings.TrimSpace(string(text)) != "0"
}

// uppers returns the interfaces on top of another one. Its master (bridge, bond) gets it back; the others are lost
// with it.
func (s sysfs) uppers(iface string) (master string, others []string) {
	master = node.LinkedName(s.path("class", "net", iface, "master"))
	entries, _ := filepath.Glob(s.path("class", "net", iface, "upper_*"))
	for _, entry := range entries {
		if name := strings.TrimPrefix(filepath.Base(entry), "upper_"); name != master {
			others = append(others, name)
		}
	}
	return master, others
}
