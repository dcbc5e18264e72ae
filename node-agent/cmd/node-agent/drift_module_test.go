// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/stretchr/testify/require"
)

// Of kmod/include/uapi/linux/ringcap.h.
const (
	moduleClusterDel  = 3
	moduleRingDel     = 6
	moduleRulesBegin  = 11
	moduleRulesCommit = 13
	moduleRuleDel     = 17
	moduleName        = 5
	moduleRule        = 48
	moduleRuleSize    = 136
)

var onModule = []drift{
	{name: "ring deleted", stops: true, recreated: true, do: func(m *machine) { m.request(request{moduleRingDel, "mirror", nil}) }},
	{name: "another ring and its queues deleted", do: func(m *machine) {
		m.request(request{moduleRingDel, "fresh", nil}, request{moduleClusterDel, "fresh", nil})
	}},
	{name: "rules taken away", do: func(m *machine) {
		m.request(request{moduleRulesBegin, "mirror", nil}, request{moduleRulesCommit, "mirror", nil})
	}},
	{name: "one rule deleted", do: func(m *machine) {
		m.request(request{moduleRuleDel, "mirror", binary.NativeEndian.AppendUint32(nil, 2)})
	}},
	{name: "run folder", do: func(m *machine) { m.unlink("run") }},
}

// request is one to the module: a command about an object, and the id of a rule.
type request struct {
	command uint8
	name    string
	rule    []byte
}

// request sends requests to the module in one session, as any privileged process may.
func (m *machine) request(requests ...request) {
	conn, err := genetlink.Dial(nil)
	require.NoError(m.t, err)
	defer conn.Close()
	family, err := conn.GetFamily("ringcap")
	require.NoError(m.t, err)
	for _, r := range requests {
		e := netlink.NewAttributeEncoder()
		e.String(moduleName, r.name)
		if r.rule != nil {
			e.Bytes(moduleRule, append(r.rule, make([]byte, moduleRuleSize-len(r.rule))...))
		}
		attributes, err := e.Encode()
		require.NoError(m.t, err)
		message := genetlink.Message{Header: genetlink.Header{Command: r.command, Version: 1}, Data: attributes}
		_, err = conn.Execute(message, family.ID, netlink.Request|netlink.Acknowledge)
		require.NoError(m.t, err, "command %d of %s", r.command, r.name)
	}
}
