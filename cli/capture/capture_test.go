// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// ng writes pcapng as rcstream does.
type ng struct{ bytes.Buffer }

func (n *ng) block(kind uint32, body []byte) {
	size := uint32(len(body) + frame)
	_ = binary.Write(n, binary.LittleEndian, []uint32{kind, size})
	n.Write(body)
	_ = binary.Write(n, binary.LittleEndian, size)
}

func words(values ...uint32) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, values)
	return b.Bytes()
}

func anOption(code uint16, value []byte) []byte {
	out := binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, code), uint16(len(value)))
	return append(append(out, value...), make([]byte, (4-len(value)%4)%4)...)
}

func (n *ng) section() {
	n.block(blockSection, append(words(littleEndian, 1, ^uint32(0), ^uint32(0)), anOption(4, []byte("rcstream"))...))
}

func (n *ng) iface(name string) {
	options := anOption(optionName, []byte(name))
	if name, own, ok := strings.Cut(name, "@"); ok {
		options = append(anOption(optionName, []byte(name)), anOption(optionAbout, []byte(own))...)
	}
	n.block(blockInterface, append(words(1, 0), options...))
}

func (n *ng) packet(iface uint32, at int64, data []byte, outgoing bool) {
	flags := uint32(1)
	if outgoing {
		flags = flagsOutgoing
	}
	body := append(words(iface, uint32(at>>32), uint32(at), uint32(len(data)), uint32(len(data))+4), data...)
	body = append(body, make([]byte, (4-len(data)%4)%4)...)
	n.block(blockPacket, append(body, anOption(optionFlags, words(flags))...))
}

func (n *ng) end(read, full int) {
	comment := fmt.Sprintf("read %d full %d unattended 0 nomem 0", read, full)
	n.block(blockStatistics, append(words(0, 0, 0), anOption(optionComment, []byte(comment))...))
}

func plan(nodes ...Node) Plan {
	return Plan{Name: "ringcap-cli-0", ID: "abcde", Ring: "mirror", Nodes: nodes, Namespace: "default", Image: "agent:1", Filter: "-v", Slots: 64, Deadline: time.Hour}
}

const start = 1_700_000_000_000_000_001

// node is a Dial of one node: packets at the times given, then, once it is told to stop, the account.
func node(in io.Reader, out io.Writer, iface string, times []int64, full int) error {
	var n ng
	n.section()
	n.iface(iface)
	for i, at := range times {
		n.packet(0, start+at, bytes.Repeat([]byte{byte(i)}, 60+i%7), i%2 == 1)
	}
	if _, err := n.WriteTo(out); err != nil {
		return err
	}
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	n.end(len(times), full)
	if _, err := n.WriteTo(out); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, in)
	return nil
}

func every(from, step int64, count int) []int64 {
	times := make([]int64, count)
	for i := range times {
		times[i] = from + int64(i)*step
	}
	return times
}

func TestStreamsAreMergedInOrderOfTime(t *testing.T) {
	stop, cancel := context.WithCancel(t.Context())
	dial := func(_ context.Context, place int, in io.Reader, out, _ io.Writer) error {
		return node(in, out, []string{"7", "shop/web-1@veth7", "7"}[place], [][]int64{every(0, 1000, 5000), every(500, 700, 5000), nil}[place], place*3)
	}
	var file bytes.Buffer
	p := plan(Node{"a", []string{"mirror0"}}, Node{"b", []string{"eth1", "eth2"}}, Node{"idle", []string{"mirror0"}})
	results, disordered, err := Stream(stop, p, dial, &file, func() { time.AfterFunc(3*maxWait/2, cancel) })
	require.NoError(t, err)
	require.Zero(t, disordered)
	require.Equal(t, []Result{
		{Node: "a", Packets: 5000, Truncated: 5000, TruncatedTo: 66, Account: Account{Read: 5000}},
		{Node: "b", Packets: 5000, Truncated: 5000, TruncatedTo: 66, Account: Account{Read: 5000, Full: 3}},
		{Node: "idle", Account: Account{Full: 6}},
	}, results)
	r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	counts, last := map[string]int{}, time.Time{}
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.False(t, info.Timestamp.Before(last))
		last = info.Timestamp
		i, err := r.Interface(info.InterfaceIndex)
		require.NoError(t, err)
		require.Equal(t, bytes.Repeat([]byte{byte(counts[i.Name])}, 60+counts[i.Name]%7), data)
		require.Equal(t, len(data)+4, info.Length)
		counts[i.Name]++
	}
	require.Equal(t, map[string]int{"a/mirror0": 5000, "b/shop/web-1": 5000}, counts)
	require.Equal(t, int64(start+4999*1000), last.UnixNano())
	require.Equal(t, 3, r.NInterfaces())
	// In which order they come is chance.
	accounts := map[string][2]uint64{}
	for id := range r.NInterfaces() {
		i, err := r.Interface(id)
		require.NoError(t, err)
		accounts[i.Name] = [2]uint64{i.Statistics.PacketsReceived, i.Statistics.PacketsDropped}
	}
	require.Equal(t, map[string][2]uint64{"a/mirror0": {5000, 0}, "b/shop/web-1": {5000, 3}, "idle/mirror0": {0, 6}}, accounts)
}

// A node that fails does not stop the others, and its reason is rcstream's own.
func TestOneNodeFails(t *testing.T) {
	stop, cancel := context.WithCancel(t.Context())
	dial := func(_ context.Context, place int, in io.Reader, out, errOut io.Writer) error {
		if place == 1 {
			fmt.Fprintln(errOut, "rcstream: no queue was given")
			return errors.New("command terminated with exit code 1")
		}
		return node(in, out, "7", every(0, 1, 10), 0)
	}
	results, _, err := Stream(stop, plan(Node{"a", []string{"x"}}, Node{"b", []string{"x"}}), dial, io.Discard, cancel)
	require.NoError(t, err)
	require.Equal(t, int64(10), results[0].Read)
	require.NoError(t, results[0].Err)
	require.EqualError(t, results[1].Err, "no queue was given")
}

// A connection that breaks is told from an end, and what came is in the file.
func TestConnectionBreaks(t *testing.T) {
	dial := func(_ context.Context, _ int, _ io.Reader, out, _ io.Writer) error {
		var n ng
		n.section()
		n.iface("7")
		n.packet(0, start, make([]byte, 60), false)
		_, err := n.WriteTo(out)
		return err
	}
	results, _, err := Stream(t.Context(), plan(Node{"a", []string{"x"}}), dial, io.Discard, func() {})
	require.NoError(t, err)
	require.Equal(t, int64(1), results[0].Packets)
	require.ErrorContains(t, results[0].Err, "before the account came")
}

// A stream that ends in good order before it is told to is not complete: its account lacks what came later.
func TestANodeEndsByItself(t *testing.T) {
	dial := func(_ context.Context, _ int, _ io.Reader, out, _ io.Writer) error {
		return node(strings.NewReader("\n"), out, "7", every(0, 1, 10), 0)
	}
	results, _, err := Stream(t.Context(), plan(Node{"a", []string{"x"}}), dial, io.Discard, func() {})
	require.NoError(t, err)
	require.EqualValues(t, 10, results[0].Packets)
	require.ErrorContains(t, results[0].Err, "ended by itself")
}

// full is a disk without room.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestFileCannotBeWritten(t *testing.T) {
	dial := func(_ context.Context, _ int, in io.Reader, out, _ io.Writer) error {
		return node(in, out, "7", every(0, 1, 100000), 0)
	}
	_, _, err := Stream(t.Context(), plan(Node{"a", []string{"x"}}), dial, fullDisk{}, func() {})
	require.ErrorContains(t, err, "no space left on device")
}

func TestMergerWaitsNoLongerThanItMay(t *testing.T) {
	now := time.Unix(100, 0)
	m := newMerger(2, time.Second, 1000)
	m.add(0, Packet{Time: time.Unix(1, 0), Data: make([]byte, 600)}, now)
	_, _, ok := m.take(now)
	require.False(t, ok, "the other stream may have an earlier one")
	_, _, ok = m.take(now.Add(time.Second))
	require.True(t, ok)
	m.add(1, Packet{Time: time.Unix(0, 0)}, now)
	m.add(0, Packet{Time: time.Unix(2, 0), Data: make([]byte, 600)}, now)
	stream, _, ok := m.take(now)
	require.True(t, ok)
	require.Equal(t, 1, stream)
	require.EqualValues(t, 1, m.disordered)
	_, _, ok = m.take(now)
	require.False(t, ok)
	m.add(0, Packet{Time: time.Unix(3, 0), Data: make([]byte, 600)}, now)
	_, _, ok = m.take(now)
	require.True(t, ok, "too much is held back")
	_, _, ok = m.take(now)
	require.False(t, ok)
	m.end(1)
	_, _, ok = m.take(now)
	require.True(t, ok)
}

// The pod asks for nothing that a namespace which enforces the restricted standard refuses.
func TestObjects(t *testing.T) {
	p := plan(Node{"worker-1", []string{"mirror0"}})
	cluster := p.Cluster()
	require.Equal(t, v1.ClusterSpec{Rings: []string{"mirror"}, Queues: 1, QueueSettings: v1.QueueSettings{
		Slots: 64, Consumers: &v1.Consumers{Namespaces: []string{"default"}},
	}}, cluster.Spec)
	pod := p.Pod(p.Nodes[0], cluster)
	c := pod.Spec.Containers[0]
	require.True(t, *pod.Spec.SecurityContext.RunAsNonRoot)
	require.Equal(t, "ALL", string(c.SecurityContext.Capabilities.Drop[0]))
	require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	require.Empty(t, pod.Spec.Volumes)
	limit := c.Resources.Limits["ringcap.io/ringcap-cli-0"]
	require.EqualValues(t, 1, limit.Value())
	require.Equal(t, []string{"/usr/bin/rcstream", "--idle", "3600"}, c.Command)
	// A filter is an argument of its own, whatever it looks like, and no shell sees it.
	require.Equal(t, []string{"/usr/bin/rcstream", "--filter", "-v", "--", "ringcap-cli-0"}, p.Command())
}

func FuzzStream(f *testing.F) {
	var n ng
	n.section()
	n.iface("7")
	n.packet(0, start, make([]byte, 61), true)
	n.end(1, 0)
	f.Add(n.Bytes())
	for i := range n.Len() {
		f.Add(slices.Concat(n.Bytes()[:i], []byte{0xff, 0xff}, n.Bytes()[min(i+2, n.Len()):]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := openStream(bytes.NewReader(data))
		for err == nil {
			var p Packet
			if p, err = s.next(); err == nil && (p.Interface >= len(s.interfaces) || len(p.Data) > p.Length) {
				t.Fatal("a packet that cannot be")
			}
		}
	})
}
