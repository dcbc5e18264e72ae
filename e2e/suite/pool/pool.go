// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pool is an entry of the configuration's resourceList. What it has not here is refused.
type pool struct {
	ResourceName   string    `json:"resourceName"`
	ResourcePrefix string    `json:"resourcePrefix"`
	Selectors      selectors `json:"selectors"`
}

// selectors leave devices out that are none of those listed; an empty list leaves out none.
type selectors struct {
	// Vendors and Devices are PCI IDs in hexadecimal.
	Vendors []string `json:"vendors"`
	Devices []string `json:"devices"`
	Drivers []string `json:"drivers"`
}

func readPools(path string) ([]pool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var config struct {
		ResourceList []pool `json:"resourceList"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&config); err != nil {
		return nil, fmt.Errorf("%s: this stand-in cannot use it: %w", path, err)
	}
	return config.ResourceList, nil
}

func (p pool) name() string { return p.ResourcePrefix + "/" + p.ResourceName }

// variable is the name of the container's variable with the addresses of its devices.
func (p pool) variable() string {
	return "PCIDEVICE_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_", "/", "_").Replace(p.name()))
}

// devices are the addresses of those that are selected, of the folder /sys/bus/pci/devices.
func (p pool) devices(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, entry := range entries {
		if p.Selectors.match(filepath.Join(folder, entry.Name())) {
			addresses = append(addresses, entry.Name())
		}
	}
	return addresses, nil
}

func (s selectors) match(device string) bool {
	driver, _ := os.Readlink(filepath.Join(device, "driver"))
	has := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	return has(s.Vendors, id(device, "vendor")) && has(s.Devices, id(device, "device")) && has(s.Drivers, filepath.Base(driver))
}

// id of a device, as selectors have it; empty for one that went.
func id(device, file string) string {
	text, _ := os.ReadFile(filepath.Join(device, file))
	return strings.TrimPrefix(strings.TrimSpace(string(text)), "0x")
}
