// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDeviceOf(t *testing.T) {
	root := t.TempDir()
	device := filepath.Join(root, "devices/pci0000:00/0000:03:00.0")
	for _, folder := range []string{device, root + "/bus/pci/drivers/igb", root + "/eth0/queues/rx-0", root + "/eth0/queues/rx-1", root + "/eth0/queues/tx-0", root + "/veth0"} {
		require.NoError(t, os.MkdirAll(folder, 0o755))
	}
	require.NoError(t, os.Symlink(device, root+"/eth0/device"))
	require.NoError(t, os.Symlink(root+"/bus/pci", device+"/subsystem"))
	require.NoError(t, os.Symlink(root+"/bus/pci/drivers/igb", device+"/driver"))

	assert.Equal(t, Device{Driver: "igb", PCIAddress: "0000:03:00.0", RxQueues: 2}, deviceIn(root, "eth0"))
	assert.Equal(t, Device{RxQueues: 1}, deviceIn(root, "veth0"))
	assert.Equal(t, Device{RxQueues: 1}, deviceIn(root, "gone"))
	assert.Equal(t, 1, DeviceOf("lo").RxQueues)
}

func TestNUMANodeOf(t *testing.T) {
	root := t.TempDir()
	for name, device := range map[string]string{"eth0": "pci0/0000:03:00.0", "eth1": "pci1/0000:83:00.0/virtio3", "eth2": "pci2/0000:04:00.0"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "devices", device), 0o755))
		require.NoError(t, os.MkdirAll(filepath.Join(root, name), 0o755))
		require.NoError(t, os.Symlink(filepath.Join(root, "devices", device), filepath.Join(root, name, "device")))
	}
	for device, number := range map[string]string{"pci0/0000:03:00.0": "0", "pci1/0000:83:00.0": "1", "pci2/0000:04:00.0": "-1"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "devices", device, "numa_node"), []byte(number+"\n"), 0o644))
	}
	for name, want := range map[string]int{"eth0": 0, "eth1": 1} {
		got, ok := numaNodeIn(root, name)
		assert.True(t, ok, name)
		assert.Equal(t, want, got, name)
	}
	for _, name := range []string{"eth2", "gone"} {
		_, ok := numaNodeIn(root, name)
		assert.False(t, ok, name)
	}
}
