// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Device is what sysfs knows of an interface's hardware.
type Device struct {
	// Driver that is bound, and the PCI address; empty where there is none.
	Driver, PCIAddress string
	// RxQueues is the number of receive queues in use, at least 1.
	RxQueues int
}

// LinkedName is the name of what a link in sysfs leads to, as that of a device or of its driver; empty without a link.
func LinkedName(link string) string {
	target, err := os.Readlink(link)
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// sysClassNet is where the kernel shows interfaces.
const sysClassNet = "/sys/class/net"

// DeviceOf reads what there is to know; an interface without hardware, or that is gone, has none.
func DeviceOf(name string) Device { return deviceIn(sysClassNet, name) }

// NUMANodeOf is the memory node that an interface's hardware is at; false if the kernel does not report one.
func NUMANodeOf(name string) (int, bool) { return numaNodeIn(sysClassNet, name) }

// numaNodeIn asks the device's parents, too: a virtio device is below one of PCI, which knows.
func numaNodeIn(root, name string) (int, bool) {
	folder, err := filepath.EvalSymlinks(filepath.Join(root, name, "device"))
	if err != nil {
		return 0, false
	}
	for ; len(folder) > 1; folder = filepath.Dir(folder) {
		text, err := os.ReadFile(filepath.Join(folder, "numa_node"))
		if err == nil {
			number, err := strconv.Atoi(strings.TrimSpace(string(text)))
			return number, err == nil && number >= 0
		}
	}
	return 0, false
}

func deviceIn(root, name string) Device {
	d := Device{RxQueues: 1}
	device := filepath.Join(root, name, "device")
	d.Driver = LinkedName(filepath.Join(device, "driver"))
	if LinkedName(filepath.Join(device, "subsystem")) == "pci" {
		d.PCIAddress = LinkedName(device)
	}
	queues, err := os.ReadDir(filepath.Join(root, name, "queues"))
	if err != nil {
		return d
	}
	rx := 0
	for _, queue := range queues {
		if strings.HasPrefix(queue.Name(), "rx-") {
			rx++
		}
	}
	d.RxQueues = max(rx, 1)
	return d
}
