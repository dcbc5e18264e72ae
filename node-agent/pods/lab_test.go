// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/node-agent/testnet"
)

/*
 * lab is a node in a network namespace of its own, with pods that have namespaces and veth pairs as a CNI plugin makes them, and
 * a proc file system in which each pod has a process.
 *
 *	+------- node -------+      +--- pod ---+
 *	|  h<pid>  ----------|------|--- eth0   |
 *	+--------------------+      +-----------+
 */
type lab struct {
	t    testing.TB
	proc string
	next int
}

func newLab(t testing.TB) *lab {
	t.Helper()
	testnet.Enter(t)
	return &lab{t: t, proc: t.TempDir(), next: 100}
}

// sandbox is a pod on the node.
type sandbox struct {
	object    Object
	namespace netns.NsHandle
	pids      []int
	// index of the node's side, and its name.
	index int
	name  string
}

func uid(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// newNamespace makes a namespace and comes back.
func newNamespace(t testing.TB) netns.NsHandle {
	back, err := netns.Get()
	require.NoError(t, err)
	defer back.Close()
	made, err := netns.New()
	require.NoError(t, err)
	require.NoError(t, testnet.Quiet())
	require.NoError(t, netns.Set(back))
	return made
}

// pod makes one with an interface and a process.
func (l *lab) pod(labels map[string]string) *sandbox {
	l.next++
	s := &sandbox{namespace: newNamespace(l.t), name: fmt.Sprintf("h%d", l.next)}
	s.object = Object{Pod: plan.Pod{Namespace: "n", Name: fmt.Sprintf("p%d", l.next), Labels: labels}, UID: uid(l.next), Running: true}
	s.index = l.attach(s, s.name, "eth0")
	l.process(s, s.namespace)
	return s
}

// attach gives a pod an interface, up on both sides.
func (l *lab) attach(s *sandbox, host, inside string) int {
	veth := netlink.NewVeth(netlink.LinkAttrs{Name: host})
	veth.PeerName, veth.PeerNamespace = inside, netlink.NsFd(s.namespace)
	require.NoError(l.t, netlink.LinkAdd(veth))
	made, err := netlink.LinkByName(host)
	require.NoError(l.t, err)
	require.NoError(l.t, netlink.LinkSetUp(made))
	in, err := netlink.NewHandleAt(s.namespace, unix.NETLINK_ROUTE)
	require.NoError(l.t, err)
	defer in.Close()
	peer, err := in.LinkByName(inside)
	require.NoError(l.t, err)
	require.NoError(l.t, in.LinkSetUp(peer))
	return made.Attrs().Index
}

// process gives a pod a process in a namespace, younger than those before.
func (l *lab) process(s *sandbox, namespace netns.NsHandle) {
	l.next++
	folder := filepath.Join(l.proc, strconv.Itoa(l.next))
	require.NoError(l.t, os.MkdirAll(filepath.Join(folder, "ns"), 0o755))
	require.NoError(l.t, os.Symlink(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), int(namespace)), filepath.Join(folder, "ns", "net")))
	l.write(folder, "cgroup", "0::/kubepods/besteffort/pod"+s.object.UID+"/abc\n")
	l.write(folder, "stat", fmt.Sprintf("%d (a) b) c) S%s %d 0 0\n", l.next, stringOf(18, " 0"), l.next))
	s.pids = append(s.pids, l.next)
}

func stringOf(n int, text string) (all string) {
	for range n {
		all += text
	}
	return all
}

func (l *lab) write(folder, name, text string) {
	require.NoError(l.t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
}

// remove takes a pod away as a CNI plugin does: the interface, then the namespace.
func (l *lab) remove(s *sandbox) {
	l.kill(s)
	if link, err := netlink.LinkByName(s.name); err == nil {
		require.NoError(l.t, netlink.LinkDel(link))
	}
	require.NoError(l.t, unix.Close(int(s.namespace)))
}

func (l *lab) kill(s *sandbox) {
	for _, pid := range s.pids {
		require.NoError(l.t, os.RemoveAll(filepath.Join(l.proc, strconv.Itoa(pid))))
	}
	s.pids = nil
}
