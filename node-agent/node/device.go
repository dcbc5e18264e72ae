// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Device describes an interface's hardware, from sysfs.
type Device struct {
	// Driver that is bound, and the PCI address; empty if there is none.
	Driver, PCIAddress string
	// RxQueues is the number of receive queues in use, at least 1.
	RxQueues int
}

// LinkedName returns the name of the target of a link in sysfs, such as a device or its driver. It is empty without a
// link.
func LinkedName(link string) string {
	target, err := os.Readlink(link)
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// sysClassNet is the folder in which the kernel lists interfaces.
const sysClassNet = "/sys/class/net"

// DeviceOf reads an interface's hardware. It is empty for an interface without hardware, or one that is gone.
func DeviceOf(name string) Device { return deviceIn(sysClassNet, name) }

// NUMANodeOf returns the NUMA node of an interface's hardware. It returns false if the kernel does not report one.
func NUMANodeOf(name string) (int, bool) { return numaNodeIn(sysClassNet, name) }

// numaNodeIn also asks the device's parents: a virtio device is below a PCI device, which knows the node.
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
