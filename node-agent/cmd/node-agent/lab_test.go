// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/engine/ebpf"
	"github.com/ringcap/ringcap/node-agent/testnet"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// asAgent makes the test binary be the program under test.
const asAgent = "RINGCAP_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		// The holder of standard input has something to do before the agent starts.
		_, _ = io.Copy(io.Discard, os.Stdin)
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

/*
 * Each test has a machine of its own: a network namespace, a bpffs and folders.
 *
 *	+--------------------- the machine ---------------------+
 *	|  sender0 ---- veth ---- mirror0   node-agent  rcount  |
 *	+-------------------------------------------------------+
 */
type machine struct {
	t      *testing.T
	base   string
	sender netlink.Link
	socket int
	sent   int
	// attended: the queues of "ids" have consumers.
	attended bool
	// timeout of each wait.
	timeout time.Duration
}

const outDir = "../../../out/bin"

func newMachine(t *testing.T) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes a network namespace and loads eBPF programs")
	}
	if err := ebpf.Probe(); err != nil {
		t.Skipf("this kernel cannot run the eBPF engine: %v", err)
	}
	for _, program := range []string{"rcount", "rcbpf"} {
		if _, err := os.Stat(filepath.Join(outDir, program)); err != nil {
			t.Skipf("needs out/bin/%s: make lib", program)
		}
	}
	base, err := os.MkdirTemp("", "rcn")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	m := &machine{t: t, base: base, timeout: 3 * time.Minute}
	for _, folder := range []string{"bpf", "manifests"} {
		require.NoError(t, os.Mkdir(m.path(folder), 0o755))
	}
	require.NoError(t, unix.Mount("bpf", m.path("bpf"), "bpf", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(m.path("bpf"), unix.MNT_DETACH)) })
	testnet.Enter(m.t)
	m.cable()
	return m
}

func (m *machine) path(parts ...string) string {
	return filepath.Join(append([]string{m.base}, parts...)...)
}

func (m *machine) cable() {
	require.NoError(m.t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "sender0"}, PeerName: "mirror0"}))
	var err error
	m.sender, err = netlink.LinkByName("sender0")
	require.NoError(m.t, err)
	require.NoError(m.t, netlink.LinkSetUp(m.sender))
	m.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	require.NoError(m.t, err)
	m.t.Cleanup(func() { unix.Close(m.socket) })
}

// connected waits until sender0 has a carrier and sends: what it is given before that is dropped.
func (m *machine) connected() {
	m.t.Helper()
	// In this goroutine: others are not in the machine's namespace.
	for deadline := time.Now().Add(m.timeout); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		sender, err := netlink.LinkByName("sender0")
		// The kernel sets the state a moment before it lets packets through, under the lock that LinkSetUp waits for.
		if err == nil && sender.Attrs().OperState == netlink.OperUp && netlink.LinkSetUp(sender) == nil {
			return
		}
	}
	m.t.Fatal("mirror0 is down")
}

// send sends UDP packets of 64 flows, at a rate that any consumer holds.
func (m *machine) send(packets int) {
	m.connected()
	to := &unix.SockaddrLinklayer{Ifindex: m.sender.Attrs().Index, Halen: 6}
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for i := range packets {
		if i%20 == 0 {
			<-pace.C
		}
		require.NoError(m.t, unix.Sendto(m.socket, udpPacket(i%64), 0, to))
	}
	m.sent += packets
}

// udpPacket is a packet of a flow, 10.0.0.<flow>:1000 to 10.1.0.1:53.
func udpPacket(flow int) []byte {
	packet := []byte{
		2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0,
		0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, byte(flow), 10, 1, 0, 1,
		3, 0xe8, 0, 53, 0, 26, 0, 0,
	}
	return append(packet, make([]byte, 18)...)
}

func (m *machine) manifest(name, text string) {
	require.NoError(m.t, os.WriteFile(m.path("manifests", name), []byte(text), 0o644))
}

// process is a program of the machine.
type process struct {
	*exec.Cmd
	t      *testing.T
	log    string
	exited chan error
}

// start runs a program in the machine's namespace. Its output goes to a file, which is shown when the test failed.
func (m *machine) start(name string, command *exec.Cmd) *process {
	p := &process{Cmd: command, t: m.t, log: m.path(name + ".log"), exited: make(chan error, 1)}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	require.NoError(m.t, err)
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	require.NoError(m.t, command.Start())
	go func() { p.exited <- command.Wait() }()
	m.t.Cleanup(func() {
		p.kill()
		if m.t.Failed() {
			m.t.Logf("%s:\n%s", name, p.output())
		}
	})
	return p
}

func (p *process) output() string {
	text, err := os.ReadFile(p.log)
	require.NoError(p.t, err)
	return string(text)
}

func (p *process) kill() {
	if p.ProcessState == nil {
		_ = p.Process.Kill()
		_ = p.wait()
	}
}

func (p *process) wait() error {
	select {
	case err := <-p.exited:
		p.exited <- err
		return err
	case <-time.After(90 * time.Second):
		return fmt.Errorf("%s did not end in 90 seconds", p.Path)
	}
}

// interrupt asks the program to end and waits for it.
func (p *process) interrupt(signal os.Signal) {
	require.NoError(p.t, p.Process.Signal(signal))
	require.NoError(p.t, p.wait())
}

// agent starts the program under test over the machine's manifests.
func (m *machine) agent(flags ...string) *process {
	return m.start("agent", m.agentCommand(flags...))
}

func (m *machine) agentCommand(flags ...string) *exec.Cmd {
	os.Remove(m.path("status.json"))
	command := exec.Command("/proc/self/exe", append([]string{
		"agent", "--standalone", m.path("manifests"), "--run-dir", m.path("run"), "--bpffs", m.path("bpf"),
		"--status-json", m.path("status.json"), "--metrics-address", "", "--rcbpf", filepath.Join(outDir, "rcbpf"),
	}, flags...)...)
	command.Env = append(os.Environ(), asAgent+"=1")
	return command
}

// consumer starts rcount on a queue and waits until it is attached.
func (m *machine) consumer(queue int) *process {
	command := exec.Command(filepath.Join(outDir, "rcount"), "-q", "-j", fmt.Sprintf("ids@%d", queue))
	command.Env = append(os.Environ(), "RINGCAP_RUN_DIR="+m.path("run"))
	p := m.start(fmt.Sprintf("rcount%d", queue), command)
	m.eventually("the consumer is attached", func(s v1.NodeCaptureStatus) bool {
		queues := clusterOf(s, "ids").Queues
		return queue < len(queues) && queues[queue].Attached
	})
	return p
}

// status is what the agent wrote last.
func (m *machine) status() v1.NodeCaptureStatus {
	var s v1.NodeCaptureStatus
	if text, err := os.ReadFile(m.path("status.json")); err == nil {
		require.NoError(m.t, json.Unmarshal(text, &s))
	}
	return s
}

func (m *machine) eventually(what string, is func(v1.NodeCaptureStatus) bool) v1.NodeCaptureStatus {
	m.t.Helper()
	var s v1.NodeCaptureStatus
	require.Eventually(m.t, func() bool { s = m.status(); return is(s) }, m.timeout, 20*time.Millisecond, what)
	return s
}

// pinDir is the eBPF engine's folder.
func (m *machine) pinDir() string { return m.path("bpf", "ringcap") }

func (m *machine) flags(name string) (up, promiscuous bool) {
	link, err := netlink.LinkByName(name)
	require.NoError(m.t, err)
	return link.Attrs().Flags&net.FlagUp != 0, link.Attrs().RawFlags&unix.IFF_PROMISC != 0
}

// counted is the number of packets that an rcount that ended has read.
func (p *process) counted() int64 { return p.number("packets") }

// number is one of the summary of the rcount that ended last.
func (p *process) number(name string) int64 {
	var summary map[string]any
	text := p.output()
	require.NoError(p.t, json.Unmarshal([]byte(text[strings.LastIndex(text, "{\"name\""):]), &summary), text)
	return int64(summary[name].(float64))
}
