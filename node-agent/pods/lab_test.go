// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
 * cgroups in which the kubelet lists the processes of each.
 *
 *	+------- node -------+      +--- pod ---+
 *	|  h<pid>  ----------|------|--- eth0   |
 *	+--------------------+      +-----------+
 */
type lab struct {
	t       testing.TB
	cgroups string
	next    int
}

func newLab(t testing.TB) *lab {
	t.Helper()
	testnet.Enter(t)
	return &lab{t: t, cgroups: t.TempDir(), next: 100}
}

// sandbox is a pod on the node.
type sandbox struct {
	object    Object
	namespace netns.NsHandle
	processes []*exec.Cmd
	// index of the node's side, and its name.
	index int
	name  string
}

func podUID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

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
	s.object = Object{Pod: plan.Pod{Namespace: "n", Name: fmt.Sprintf("p%d", l.next), Labels: labels}, UID: podUID(l.next), Running: true}
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
	back, err := netns.Get()
	require.NoError(l.t, err)
	defer back.Close()
	require.NoError(l.t, netns.Set(namespace))
	defer func() { require.NoError(l.t, netns.Set(back)) }()
	cmd := exec.Command("sleep", "3600")
	require.NoError(l.t, cmd.Start())
	l.t.Cleanup(func() { end(cmd) })
	s.processes = append(s.processes, cmd)
	l.tell(s)
}

func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// tell writes a pod's cgroup.
func (l *lab) tell(s *sandbox) {
	folder := filepath.Join(l.cgroups, "kubepods/besteffort/pod"+s.object.UID, "abc")
	require.NoError(l.t, os.MkdirAll(folder, 0o755))
	var text []byte
	for _, cmd := range s.processes {
		text = fmt.Appendln(text, cmd.Process.Pid)
	}
	require.NoError(l.t, os.WriteFile(filepath.Join(folder, "cgroup.procs"), text, 0o644))
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
	for _, cmd := range s.processes {
		end(cmd)
	}
	s.processes = nil
	l.tell(s)
}
