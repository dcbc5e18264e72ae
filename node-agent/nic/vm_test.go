// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/ringcap/ringcap/node-agent/plan"
)

// setTable sets a table of RX queues as somebody may have, which keeps its queues from being fewer.
func setTable(t *testing.T, name string) {
	state, queues, err := readTable(name)
	if err != nil || queues < 2 {
		return
	}
	state.table[0] = 1
	require.NoError(t, rssQueuesTunable().write(name, tableText(state.table, 0)))
}

// In a VM (see node-agent/tests): what NICs of several drivers can and cannot be told, and that all of it goes back.
// RINGCAP_NICS names them, and what each cannot: "eth0=rss.hash,rss.queues eth1=".
func TestVMSetsAndRestores(t *testing.T) {
	nics := os.Getenv("RINGCAP_NICS")
	if nics == "" {
		t.Skip("needs NICs of its own: node-agent/tests/run")
	}
	m := New(filepath.Join(t.TempDir(), "nic.json"), "boot", "/sys")
	wanted := plan.NICSettings{
		plan.SettingPromiscuous: {Value: on}, plan.SettingOffloads: {Value: off}, plan.SettingVLANOffload: {Value: off},
		plan.SettingRxQueues: {Value: "1"}, plan.SettingRxRingSize: {Value: "512"}, plan.SettingRSSQueues: {Value: "1"},
		plan.SettingRSSHash: {Value: "Symmetric"}, plan.SettingRSSFields: {Value: "AddressesAndPorts"},
		plan.SettingThreadedPolling: {Value: on}, plan.SettingPollingCPUs: {Value: "1"},
	}
	for _, word := range strings.Fields(nics) {
		name, cannot, _ := strings.Cut(word, "=")
		t.Run(name, func(t *testing.T) {
			// igb fills its table of queues when it is first up.
			link, err := findLink(name)
			require.NoError(t, err)
			require.NoError(t, netlink.LinkSetUp(link))
			require.NoError(t, netlink.LinkSetDown(link))
			setTable(t, name)
			was := everything(t, m, name)
			for range 2 {
				outcomes, err := m.Apply(map[string]plan.NICSettings{name: wanted})
				require.NoError(t, err)
				require.NoError(t, outcomes[name].Err)
				var refused []string
				for _, s := range outcomes[name].Settings {
					t.Logf("%s: %s wanted %s, is %s %s %s", name, s.Setting, s.Value, s.Actual, s.Problem, s.Message)
					if s.Problem != "" {
						refused = append(refused, string(s.Setting))
					}
				}
				assert.Equal(t, cannot, strings.Join(refused, ","))
				threads, err := pollingThreads("/sys", name)
				require.NoError(t, err)
				assert.NotEmpty(t, threads)
			}
			outcomes, err := m.Apply(nil)
			require.NoError(t, err)
			require.Empty(t, outcomes)
			assert.Equal(t, was, everything(t, m, name))
		})
	}
}

func everything(t *testing.T, m *Manager, name string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, k := range m.device.tunables {
		value, err := k.read(name)
		if err != nil {
			require.ErrorIs(t, err, errNotSupported, k.name)
			continue
		}
		values[k.name] = value
	}
	return values
}
