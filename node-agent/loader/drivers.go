// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/driver"
	"github.com/ringcap/ringcap/node-agent/node"
)

// driverModule is the module that all capture-aware drivers depend on.
const driverModule = "ringcap_driver"

// StockDrivers returns the drivers of the node's network devices, from a sysfs.
func StockDrivers(sys string) []string {
	links, _ := filepath.Glob(filepath.Join(sys, "class", "net", "*", "device", "driver"))
	var names []string
	for _, link := range links {
		names = append(names, node.LinkedName(link))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// LoadDrivers loads the image's capture-aware drivers for this kernel that could replace a stock driver. It does so
// in advance, because only the loader may load modules. A device keeps its driver until the agent binds the other one
// to it. (A device without a driver is taken by the first one that is loaded, as always.) LoadDrivers returns the
// names of the loaded drivers. The error names those that could not be loaded.
func (l Loader) LoadDrivers(stock []string) ([]string, error) {
	if l.Mode != Load {
		return nil, nil
	}
	folder := filepath.Join(l.ModulesDir, l.Identity.KernelRelease)
	var loaded []string
	var errs []error
	for _, name := range stock {
		name += driver.Suffix
		path := filepath.Join(folder, "drivers", name+".ko")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if err := errors.Join(l.loadFile(filepath.Join(folder, driverModule+".ko")), l.loadFile(path)); err != nil {
			errs = append(errs, fmt.Errorf("driver %s: %w", name, err))
			continue
		}
		loaded = append(loaded, name)
	}
	return loaded, errors.Join(errs...)
}

// loadFile loads a module, unless it is already loaded.
func (l Loader) loadFile(path string) error {
	words, err := l.load(path)
	if err == nil || errors.Is(err, unix.EEXIST) {
		return nil
	}
	if words != "" {
		return fmt.Errorf("load %s: %w (kernel log: %s)", path, err, words)
	}
	return fmt.Errorf("load %s: %w", path, err)
}

// UnloadDrivers unloads the capture-aware drivers that are loaded, and their dependencies. The error names a device
// that one of them still serves: the device would be left without any driver.
func (k RunningKernel) UnloadDrivers() error {
	holders, _ := filepath.Glob(filepath.Join(k.Sys, "module", driverModule, "holders", "*"))
	for _, holder := range holders {
		name := filepath.Base(holder)
		devices, _ := filepath.Glob(filepath.Join(k.Sys, "module", name, "drivers", "*", "*", "driver"))
		if len(devices) > 0 {
			return fmt.Errorf("device %s uses the driver %s: give it another driver, or remove it", filepath.Base(filepath.Dir(devices[0])), name)
		}
		if err := unix.DeleteModule(name, unix.O_NONBLOCK); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("the driver %s (%w)", name, err)
		}
	}
	if err := unix.DeleteModule(driverModule, unix.O_NONBLOCK); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("the module %s (%w)", driverModule, err)
	}
	return nil
}
