// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
)

func TestWhatCannotBeInAPair(t *testing.T) {
	w := newWorld(t)
	free, port, below := w.nic("free"), w.nic("port"), w.nic("below")
	w.bridge("br0", port)
	w.upper("above", below)
	w.veth("end0", "end1")
	w.add(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br1"}})
	found, err := Interfaces()
	require.NoError(t, err)
	why, indexes := map[string]string{}, map[string]int{}
	ends := map[string]int{}
	for _, i := range found {
		why[i.Name], indexes[i.Name], ends[i.Name] = i.Unpairable, i.Index, i.OtherEnd
	}
	assert.Empty(t, why[free.Attrs().Name])
	assert.Empty(t, why["end0"])
	assert.Contains(t, why["lo"], "not an Ethernet interface")
	assert.Equal(t, "belongs to br0, which takes its packets: take it out first (ip link set dev port nomaster)", why["port"])
	assert.Contains(t, why["below"], "has the macvlan interface above, which takes packets before the pair")
	assert.Equal(t, indexes["end1"], ends["end0"])
	assert.Equal(t, indexes["below"], ends["above"])
	assert.Zero(t, ends["free"])
}
