// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	cilium "github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/safchain/ethtool"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/engine/ebpf"
	"github.com/ringcap/ringcap/node-agent/engine/kmod"
)

/*
 * lab is an engine in a network namespace of its own, with pairs of interfaces, the last in a bridge. All is sent from one CPU, so that
 * packets come in the order in which they are sent.
 *
 *	+----------------------------------------+
 *	|  sender ------------------ tapped      |
 *	|  sender2 ----------------- tapped2     |
 *	|  sender3 ----------------- port/bridge |
 *	+----------------------------------------+
 */
type lab struct {
	name   string
	engine capture.Engine
	open   func(capture.Grant) (consumer, error)
	index  map[string]int
	socket map[string]int
	// namespace is where its interfaces are.
	namespace netns.NsHandle
	// sniffer is a packet socket that gets what the stack gets on "tapped".
	sniffer int
}

const txQueues = 4 // of the senders, and as many receive queues of the tapped ones

// newLab makes a lab for the engine "EBPF" or "KernelModule". It skips the test if that engine cannot run, unless
// RINGCAP_ENGINES names it.
func newLab(t *testing.T, engine string) *lab {
	t.Helper()
	must := strings.Contains(os.Getenv("RINGCAP_ENGINES"), engine)
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes a network namespace")
	}
	probe := ebpf.Probe
	if engine == "KernelModule" {
		probe = func() error { _, err := kmod.Probe(); return err }
	}
	if err := probe(); err != nil {
		require.False(t, must, "the engine cannot run here: %v", err)
		t.Skipf("this engine cannot run here: %v", err)
	}
	l := &lab{name: engine, index: map[string]int{}, socket: map[string]int{}}
	l.makeNamespace(t)
	l.addPair(t, "sender", "tapped")
	l.addPair(t, "sender2", "tapped2")
	l.addPair(t, "sender3", "port")
	l.addBridge(t, "bridge", "port")
	l.sniffer = packetSocket(t, l.index["tapped"], unix.ETH_P_ALL)
	// After XDP a packet takes a page, however short it is.
	require.NoError(t, unix.SetsockoptInt(l.sniffer, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20))
	l.start(t)
	return l
}

// makeNamespace makes the lab's namespace, and puts the test's thread into it.
func (l *lab) makeNamespace(t *testing.T) {
	l.restore(t)
	own, err := netns.New()
	require.NoError(t, err)
	l.namespace = own
	t.Cleanup(func() { own.Close() })
	l.pin(t)
	require.NoError(t, os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0))
}

// enter puts the thread of a test of its own, which is another goroutine, into the namespace.
func (l *lab) enter(t *testing.T) {
	l.restore(t)
	require.NoError(t, netns.Set(l.namespace))
	l.pin(t)
}

// restore locks the goroutine to its thread, which is again what it was when the test is over.
func (l *lab) restore(t *testing.T) {
	runtime.LockOSThread()
	origin, err := netns.Get()
	require.NoError(t, err)
	var cpus unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &cpus))
	t.Cleanup(func() {
		if netns.Set(origin) == nil && unix.SchedSetaffinity(0, &cpus) == nil {
			runtime.UnlockOSThread()
		}
		origin.Close()
	})
}

// pin keeps the thread on the first CPU that it may run on.
func (l *lab) pin(t *testing.T) {
	var cpus, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &cpus))
	for cpu := 0; one.Count() == 0; cpu++ {
		if cpus.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	require.NoError(t, unix.SchedSetaffinity(0, &one))
}

func (l *lab) addPair(t *testing.T, sender, tapped string) {
	veth := netlink.NewVeth(netlink.LinkAttrs{Name: sender, MTU: 9000, NumTxQueues: txQueues, NumRxQueues: txQueues})
	veth.PeerName, veth.PeerMTU = tapped, 9000
	veth.PeerNumTxQueues, veth.PeerNumRxQueues = txQueues, txQueues
	require.NoError(t, netlink.LinkAdd(veth))
	tool, err := ethtool.NewEthtool()
	require.NoError(t, err)
	defer tool.Close()
	for _, name := range []string{sender, tapped} {
		// XDP sees no tags that are beside the frame.
		require.NoError(t, tool.Change(name, map[string]bool{"rx-vlan-hw-parse": false}))
		i, err := netlink.LinkByName(name)
		require.NoError(t, err)
		require.NoError(t, netlink.LinkSetUp(i))
		l.index[name] = i.Attrs().Index
		l.socket[name] = packetSocket(t, i.Attrs().Index, 0)
	}
	l.steer(t, sender)
	l.steer(t, tapped)
	for _, name := range []string{sender, tapped} {
		until(t, name+" is up", func() bool {
			i, err := netlink.LinkByName(name)
			// The kernel sets the state a moment before it lets packets through, under the lock that LinkSetUp waits for.
			return err == nil && i.Attrs().OperState == netlink.OperUp && netlink.LinkSetUp(i) == nil
		})
	}
}

// steer makes crafted frames leave by the transmit queue that the last byte of their source MAC address names. So
// they arrive by the receive queue of that number; veth's skbs have one less in them. All other frames leave by the
// first queue.
func (l *lab) steer(t *testing.T, name string) {
	program, err := cilium.NewProgram(&cilium.ProgramSpec{
		Type: cilium.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.Mov.Imm(asm.R2, 0), asm.StoreMem(asm.R10, -8, asm.R2, asm.DWord),
			asm.Mov.Imm(asm.R2, 6), asm.Mov.Reg(asm.R3, asm.R10), asm.Add.Imm(asm.R3, -8), asm.Mov.Imm(asm.R4, 6),
			asm.FnSkbLoadBytes.Call(),
			asm.Mov.Imm(asm.R7, 1),
			asm.LoadMem(asm.R2, asm.R10, -8, asm.Word),
			asm.JNE.Imm(asm.R2, 2, "set"), // 02:00:00:00
			asm.LoadMem(asm.R2, asm.R10, -4, asm.Byte),
			asm.JNE.Imm(asm.R2, 0, "set"),
			asm.LoadMem(asm.R7, asm.R10, -3, asm.Byte),
			asm.Add.Imm(asm.R7, 1),
			asm.StoreMem(asm.R6, 12, asm.R7, asm.Word).WithSymbol("set"), // queue_mapping
			asm.Mov.Imm(asm.R0, -1), asm.Return(),
		},
	})
	require.NoError(t, err)
	defer program.Close()
	require.NoError(t, netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: l.index[name], Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}))
	require.NoError(t, netlink.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: l.index[name], Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL,
		},
		Fd: program.FD(), Name: "steer", DirectAction: true,
	}))
}

// addBridge makes an interface without native XDP.
func (l *lab) addBridge(t *testing.T, name, port string) {
	require.NoError(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}))
	bridge, err := netlink.LinkByName(name)
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetMasterByIndex(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: l.index[port]}}, bridge.Attrs().Index))
	require.NoError(t, netlink.LinkSetUp(bridge))
	l.index[name] = bridge.Attrs().Index
	// A port forwards when its state has changed, and that is not at once.
	until(t, name+" forwards", func() bool {
		state, err := os.ReadFile("/sys/class/net/" + port + "/brport/state")
		if err != nil {
			i, err := netlink.LinkByName(name)
			return err == nil && i.Attrs().OperState == netlink.OperUp
		}
		return strings.TrimSpace(string(state)) == "3"
	})
}

// stack counts the packets that came to the stack on "tapped".
func (l *lab) stack(t *testing.T) int {
	t.Helper()
	room := make([]byte, 65536)
	for n := 0; ; n++ {
		_, from, err := unix.Recvfrom(l.sniffer, room, unix.MSG_DONTWAIT)
		if err == unix.EAGAIN {
			return n
		}
		require.NoError(t, err)
		if link, ok := from.(*unix.SockaddrLinklayer); ok && link.Pkttype == unix.PACKET_OUTGOING {
			n--
		}
	}
}

// packetSocket opens a raw socket on an interface. It receives packets of a protocol, or none.
func packetSocket(t *testing.T, index, protocol int) int {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: index, Protocol: uint16(protocol<<8&0xff00 | protocol>>8)}))
	return fd
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !condition(); time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "timed out: %s", what)
	}
}

func (l *lab) start(t *testing.T) {
	base, err := os.MkdirTemp("", "rcc")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	if l.name == "KernelModule" {
		l.engine, l.open = kmod.New(filepath.Join(base, "run"), 1), openLaneQueue
		return
	}
	bpffs := filepath.Join(base, "bpf")
	require.NoError(t, os.Mkdir(bpffs, 0o700))
	require.NoError(t, unix.Mount("bpf", bpffs, "bpf", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(bpffs, unix.MNT_DETACH)) })
	engine, err := ebpf.New(ebpf.Options{PinDir: filepath.Join(bpffs, "ringcap"), RunDir: filepath.Join(base, "run"), Lanes: 1})
	require.NoError(t, err)
	t.Cleanup(func() { engine.Close() })
	l.engine, l.open = engine, openMapQueue
}

// send writes a packet to an interface.
func (l *lab) send(t *testing.T, from string, frame []byte) {
	t.Helper()
	for {
		_, err := unix.Write(l.socket[from], frame)
		if err == unix.ENOBUFS {
			continue
		}
		require.NoError(t, err)
		return
	}
}
