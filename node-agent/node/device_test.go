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
