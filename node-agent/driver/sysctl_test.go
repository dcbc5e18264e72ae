// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/testnet"
)

// procSysNet is the machine's; it shows the network namespace of who looks.
const procSysNet = "/proc/sys/net"

// newDevice is an interface as one that a driver has just made: down, and with the kernel's defaults.
func newDevice(t *testing.T) netlink.Link {
	t.Helper()
	dev := &netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: "mirror7", TxQLen: 32, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 7}}}
	require.NoError(t, netlink.LinkAdd(dev))
	return link(t, "mirror7")
}

// setSysctls sets them in their order, each "key value".
func setSysctls(t *testing.T, values ...[2]string) {
	t.Helper()
	for _, pair := range values {
		require.NoError(t, os.WriteFile(sysctls(procSysNet).path("mirror7", pair[0]), []byte(pair[1]), 0), pair[0])
	}
}

// What the interface had is what the next one of its name has, once it is restored from what was noted on disk.
func TestSysctlsComeBack(t *testing.T) {
	const secret = "2001:0db8:0000:0000:0000:0000:0000:0007"
	for name, special := range map[string][][2]string{
		"without IPv6":            {{"ipv6/conf/disable_ipv6", "1"}},
		"with IPv6":               {{"ipv6/conf/disable_ipv6", "0"}},
		"secret":                  {{"ipv6/conf/stable_secret", secret}},
		"secret that is not used": {{"ipv6/conf/stable_secret", secret}, {"ipv6/conf/addr_gen_mode", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			testnet.Enter(t)
			m := New(filepath.Join(t.TempDir(), "drivers.json"), "boot", "/sys", procSysNet)
			dev := newDevice(t)
			require.NoError(t, netlink.LinkSetMTU(dev, 9000))
			setSysctls(t, [2]string{"ipv4/conf/rp_filter", "2"}, [2]string{"ipv4/conf/forwarding", "1"}, [2]string{"ipv4/neigh/base_reachable_time_ms", "15500"},
				[2]string{"ipv6/conf/accept_ra", "0"}, [2]string{"ipv6/neigh/unres_qlen_bytes", "4000"})
			require.NoError(t, netlink.LinkSetUp(dev))
			setSysctls(t, special...)
			before, err := m.snapshot("mirror7")
			require.NoError(t, err)
			for _, pair := range special {
				assert.Equal(t, pair[1], before.Sysctls[pair[0]])
			}
			require.NoError(t, m.note(map[string]replacement{}, replacement{hardware: hardware{Address: "a"}, Before: before}))
			noted, err := New(m.records.Path, "boot", "/sys", procSysNet).records.Load()
			require.NoError(t, err)

			require.NoError(t, netlink.LinkDel(dev))
			newDevice(t)
			require.NoError(t, m.restore(noted["a"].Before, "mirror7"))
			after, err := m.snapshot("mirror7")
			require.NoError(t, err)
			assert.Equal(t, before.Sysctls, after.Sysctls)
		})
	}
}

// An agent of the earlier release noted no sysctls: they are left as they are.
func TestSysctlsOfAnEarlierRelease(t *testing.T) {
	testnet.Enter(t)
	path := filepath.Join(t.TempDir(), "drivers.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"bootID": "boot", "records": {"0000:00:04.0": {
		"bus": "pci", "address": "0000:00:04.0", "stock": "igb", "aware": "igb_ringcap", "phase": "replaced",
		"before": {"name": "mirror7", "up": true, "carrier": true, "mtu": 1400, "txQueue": 32, "mac": "AgAAAAAH", "settings": {}}}}}`), 0o600))
	m := New(path, "boot", "/sys", procSysNet)
	noted, err := m.records.Load()
	require.NoError(t, err)
	newDevice(t)
	setSysctls(t, [2]string{"ipv6/conf/accept_ra", "0"})
	require.NoError(t, m.restore(noted["0000:00:04.0"].Before, "mirror7"))
	after, err := m.snapshot("mirror7")
	require.NoError(t, err)
	assert.Equal(t, 1400, after.MTU)
	assert.Equal(t, "0", after.Sysctls["ipv6/conf/accept_ra"])
}

// What cannot be set is named, and does not keep the rest from being set.
func TestSysctlsThatCannotBeSet(t *testing.T) {
	testnet.Enter(t)
	newDevice(t)
	err := sysctls(procSysNet).write("mirror7", map[string]string{
		"ipv6/conf/accept_ra": "0", "ipv6/conf/gone": "1", "ipv6/conf/addr_gen_mode": "9", "ipv6/neigh/ucast_solicit": "7",
	})
	require.ErrorContains(t, err, "/proc/sys/net/ipv6/conf/mirror7/gone: no such file or directory")
	require.ErrorContains(t, err, "/proc/sys/net/ipv6/conf/mirror7/addr_gen_mode: invalid argument")
	values, err := sysctls(procSysNet).read("mirror7")
	require.NoError(t, err)
	assert.Equal(t, "0", values["ipv6/conf/accept_ra"])
	assert.Equal(t, "7", values["ipv6/neigh/ucast_solicit"])
}

// Where they could not be given back, as in a container's own /proc, nothing is begun.
func TestSysctlsThatWouldBeLost(t *testing.T) {
	testnet.Enter(t)
	newDevice(t)
	// A mount of nobody's, that is seen by its descriptor only.
	mount, err := unix.OpenTree(unix.AT_FDCWD, procSysNet, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(mount)
	folder := fmt.Sprintf("/proc/self/fd/%d", mount)
	m := New("", "boot", "/sys", folder)
	_, err = m.snapshot("mirror7")
	require.NoError(t, err)
	require.NoError(t, unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}))
	_, err = m.snapshot("mirror7")
	require.ErrorContains(t, err, "the sysctls of mirror7 would be lost: open "+folder+"/ipv4/conf/mirror7/accept_local: read-only file system")
	m.sysctls = sysctls(filepath.Join(folder, "wrong"))
	_, err = m.snapshot("mirror7")
	require.ErrorContains(t, err, "would be lost")
}
