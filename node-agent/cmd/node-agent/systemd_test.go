// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const unitDir = "../../systemd"

// unitSetting is the value of a unit's setting.
func unitSetting(t *testing.T, unit, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(unitDir, unit))
	require.NoError(t, err)
	found := regexp.MustCompile("(?m)^" + name + "=(.*)$").FindStringSubmatch(string(text))
	require.NotNil(t, found, "%s has no %s", unit, name)
	return found[1]
}

func capabilities(t *testing.T, unit string) []string {
	all := strings.Fields(unitSetting(t, unit, "CapabilityBoundingSet"))
	slices.Sort(all)
	return all
}

// systemd itself understands the units, with the program where this test has it.
func TestUnitsAreSound(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze")
	}
	program, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	units := []string{"ringcap-agent.service", "ringcap-module.service"}
	for _, unit := range units {
		text, err := os.ReadFile(filepath.Join(unitDir, unit))
		require.NoError(t, err)
		require.Contains(t, string(text), "ExecStart=/usr/bin/node-agent ")
		text = []byte(strings.ReplaceAll(string(text), "/usr/bin/node-agent", program))
		text = []byte(regexp.MustCompile("(?m)^Documentation=.*$").ReplaceAllString(string(text), ""))
		require.NoError(t, os.WriteFile(filepath.Join(folder, unit), text, 0o644))
	}
	for _, unit := range units {
		command := exec.Command("systemd-analyze", "verify", "--recursive-errors=one", filepath.Join(folder, unit))
		said, err := command.CombinedOutput()
		require.NoError(t, err, string(said))
		assert.NotContains(t, string(said), unit+":", "a setting that systemd does not know or ignores")
	}
}

// The flags that the unit gives are the program's.
func TestUnitsFlags(t *testing.T) {
	line := strings.Fields(strings.ReplaceAll(unitSetting(t, "ringcap-agent.service", "ExecStart"), "$RINGCAP_OPTIONS", ""))
	f, err := parseAgentFlags(line[2:], func(string) string { return "" }, "box1", io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "/etc/ringcap", f.standalone)
	assert.Equal(t, "/run/"+unitSetting(t, "ringcap-agent.service", "RuntimeDirectory"), f.runDir)
}

// A machine's agent has the capabilities of a cluster's, and no others; only the loader may load modules.
func TestUnitsCapabilities(t *testing.T) {
	text, err := os.ReadFile("../../../charts/testdata/defaults.yaml")
	require.NoError(t, err)
	start := strings.Index(string(text), "            - --kubelet-dir=")
	require.Positive(t, start)
	list := regexp.MustCompile(`(?s)\n              add:\n(.*?)\n            [#a-z]`).FindStringSubmatch(string(text)[start:])
	require.NotNil(t, list)
	var chart []string
	for _, name := range strings.Fields(strings.ReplaceAll(list[1], "- ", "")) {
		chart = append(chart, "CAP_"+name)
	}
	slices.Sort(chart)
	assert.Equal(t, chart, capabilities(t, "ringcap-agent.service"))
	assert.Equal(t, []string{"CAP_NET_ADMIN", "CAP_SYS_MODULE"}, capabilities(t, "ringcap-module.service"))
}

// confined is a command with the unit's capabilities, as systemd starts it.
func confined(t *testing.T, unit string, command *exec.Cmd) *exec.Cmd {
	t.Helper()
	set := "-all"
	for _, name := range capabilities(t, unit) {
		set += ",+" + strings.ToLower(strings.TrimPrefix(name, "CAP_"))
	}
	program, err := os.Executable()
	require.NoError(t, err)
	within := exec.Command("setpriv", append([]string{"--no-new-privs", "--inh-caps", "-all", "--bounding-set", set, program}, command.Args[1:]...)...)
	within.Env = command.Env
	return within
}

// get asks a server of the machine, from this thread, which is in its namespace.
func (m *machine) get(address, path string) string {
	connection, err := net.Dial("tcp", address)
	require.NoError(m.t, err)
	defer connection.Close()
	_, err = fmt.Fprintf(connection, "GET %s HTTP/1.0\r\n\r\n", path)
	require.NoError(m.t, err)
	text, err := io.ReadAll(connection)
	require.NoError(m.t, err)
	return string(text)
}

// The agent does all of its work with the unit's capabilities: from a manifest to the last packet, with /metrics, through a
// manifest that is spoilt and put right.
func TestTheUnitsAgent(t *testing.T) {
	m := newMachine(t)
	lo, err := netlink.LinkByName("lo")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetUp(lo))
	m.manifest("mirror.yaml", mirrorManifest)
	command := m.agentCommand("--metrics-address", "127.0.0.1:9466")
	agent := m.start("agent", confined(t, "ringcap-agent.service", command))
	m.eventually("ready", ready)
	consumers := []*process{m.consumer(0), m.consumer(1)}
	m.send(640)

	m.manifest("mirror.yaml", strings.Replace(mirrorManifest, "queues: 2", "queues: 2, balance: Best, colour: red", 1))
	require.Eventually(t, func() bool {
		return strings.Contains(agent.output(), `mirror.yaml: Cluster ids: unknown field "spec.colour"; until then as before the change: Cluster ids`)
	}, m.timeout, 20*time.Millisecond, "the manifest is refused")
	m.send(640)
	m.manifest("mirror.yaml", strings.Replace(mirrorManifest, "name: mirror0", "name: mirror0}, {name: mirror7", 1))
	m.eventually("the ring is refused, and its queues stay", func(s v1.NodeCaptureStatus) bool {
		return len(s.Rings) == 1 && s.Rings[0].Reason == v1.ReasonInterfaceNotFound && len(s.Clusters) == 1 && s.Clusters[0].Queues[0].Attached
	})
	require.Contains(t, agent.output(), "matches none of this node's interfaces: lo, mirror0, sender0; until then it stays as it was before the change ("+
		m.path("manifests", "mirror.yaml")+")")
	m.manifest("mirror.yaml", mirrorManifest)
	m.eventually("ready again", ready)
	m.eventually("all is delivered", func(s v1.NodeCaptureStatus) bool {
		return ready(s) && s.Clusters[0].Queues[0].Delivered+s.Clusters[0].Queues[1].Delivered == int64(m.sent)
	})
	assert.Contains(t, m.get("127.0.0.1:9466", "/metrics"), "ringcap_ring_")
	var read int64
	for _, consumer := range consumers {
		consumer.interrupt(unix.SIGINT)
		read += consumer.counted()
	}
	assert.EqualValues(t, m.sent, read)
	agent.interrupt(unix.SIGTERM)
	assert.NoDirExists(t, m.pinDir())
}
