// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/ringcap/ringcap/e2e/demo/account"
	"github.com/ringcap/ringcap/e2e/demo/counters"
	"github.com/ringcap/ringcap/e2e/demo/trace"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// replay is packets that are sent to nodes, and what becomes of them in the queues of one name. Its folder is an account.Run.
type replay struct {
	*Case
	account.Run
	input         string       // the capture that is sent
	nodes         []string     // to which
	wire          string       // the cable's end that it is sent into
	rate          int          // packets a second to each node; 0: the demo's, which are not the same for all
	consumers     []corev1.Pod // each writes /captures/POD.pcap
	from          []string     // the size of their files before
	before, after v1alpha1.NodeCaptureList
	wires         map[string]account.Wire
}

// replay of the suite's capture to both nodes, read by the demo's consumers; a case changes what is different.
func (c *Case) replay(name string) *replay {
	folder := c.file(name)
	require.NoError(c, os.MkdirAll(folder, 0o755))
	return &replay{Case: c, Run: account.Run{Folder: folder, Ring: "mirror", Cluster: "ids"}, input: c.trace, nodes: nodes,
		wire: "wire0", consumers: c.podsOf(demo, "app.kubernetes.io/name=tcpdump")}
}

// over has the packets counted in another ring and cluster of one name, and written by other consumers.
func (r *replay) over(name string, consumers ...corev1.Pod) *replay {
	r.Ring, r.Cluster, r.consumers = name, name, consumers
	return r
}

// under is what happens while packets flow.
type under struct {
	at      int    // packets that were sent to each node when disturb is called; 0: it is called before
	disturb func() // on the test's goroutine; it returns when what it did is over
	undo    func() // when all was sent
}

// lossless is what most replays are: nothing is filtered or dropped.
var lossless = account.Options{Lossless: true}

// disturbed sends while something may disturb, waits until all is read and has every packet accounted for.
func (r *replay) disturbed(u under, options account.Options) account.Summary {
	r.begin()
	r.flow(u)
	r.settle(150)
	r.collect()
	return r.check(options)
}

// begin notes what was counted and written up to now.
func (r *replay) begin() {
	r.write(r.file("input.pcap"), r.read(r.input))
	for _, pod := range r.consumers {
		r.from = append(r.from, r.in(&pod, "stat", "-c", "%s", "/captures/"+pod.Name+".pcap"))
	}
	r.before = r.counters()
	r.writeJSON("before.json", r.before)
}

func (r *replay) flow(u under) {
	if u.at > 0 {
		r.flowThrough(u.at, u.disturb)
	} else {
		if u.disturb != nil {
			u.disturb()
		}
		require.NoError(r, r.send())
	}
	r.writeJSON("wire.json", r.wires)
	if u.undo != nil {
		u.undo()
	}
}

// flowThrough sends the input to all nodes at the same rate, round after round, and disturbs once each node has had so many packets. At
// least one whole round follows the disturbance, so each node has packets before, during and after it.
func (r *replay) flowThrough(at int, disturb func()) {
	r.rate = cmp.Or(r.rate, 5000)
	before := r.onCables()
	flows, end := context.WithCancel(r.ctx)
	defer end()
	done := r.background(func() error { return r.sendUntil(flows) })
	r.more(before, at)
	begun := r.onCables()
	disturb()
	over := r.onCables()
	end()
	require.NoError(r, <-done)
	for _, node := range r.nodes {
		require.Greater(r, over[node], begun[node], "%s had no packets during the disturbance", node)
		require.Greater(r, before[node]+r.onWire(node), over[node], "%s had all its packets before the disturbance ended", node)
	}
}

// more waits until each node was sent so many packets more than before.
func (r *replay) more(before map[string]int, packets int) {
	r.until(60, "packets flow", func() {
		for node, sent := range r.onCables() {
			require.GreaterOrEqual(r, sent-before[node], packets, node)
		}
	})
}

// onCables is how many packets the sending end of each node's cable has sent.
func (r *replay) onCables() map[string]int {
	sent := map[string]int{}
	for _, node := range r.nodes {
		sent[node] = r.number(r.run("RINGCAP_REPLAY_WIRE="+r.wire, "e2e/suite/provision", "wire_counter", node, "tx_packets"))
	}
	return sent
}

// sendUntil sends the input again and again, the last time begun when ctx is done, and accounts for all of it as one.
func (r *replay) sendUntil(ctx context.Context) error {
	once, err := os.ReadFile(r.input)
	if err != nil {
		return err
	}
	total, all := map[string]account.Wire{}, bytes.NewBuffer(once[:24:24])
	for round, last := 0, false; !last; round++ {
		last = ctx.Err() != nil
		if err := r.ctx.Err(); err != nil {
			return err
		}
		wires, err := r.sendOnce(r.file(fmt.Sprint("wire.", round)))
		if err != nil {
			return err
		}
		all.Write(once[24:])
		for node, wire := range wires {
			sum := total[node]
			total[node] = account.Wire{Sent: sum.Sent + wire.Sent, Lost: sum.Lost + wire.Lost, OnWire: sum.OnWire + wire.OnWire}
		}
	}
	r.wires = total
	return os.WriteFile(r.file("input.pcap"), all.Bytes(), 0o644)
}

func (r *replay) send() (err error) {
	r.wires, err = r.sendOnce(r.file("wire.json"))
	return err
}

// sendOnce replays the input to all nodes at the same time, and returns what the sending ends counted.
func (r *replay) sendOnce(file string) (wires map[string]account.Wire, err error) {
	words := []string{"RINGCAP_REPLAY_WIRE=" + r.wire}
	if r.rate > 0 {
		words = append(words, fmt.Sprint("RINGCAP_DEMO_PPS_EBPF=", r.rate), fmt.Sprint("RINGCAP_DEMO_PPS_KMOD=", r.rate))
	}
	words = append(words, "e2e/suite/provision", "replay", r.input, file)
	if _, err := r.pipe("", append(words, r.nodes...)...); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	return wires, errors.Join(err, json.Unmarshal(data, &wires))
}

// counters are the present ones of all agents; an agent may be starting.
func (c *Case) counters() v1alpha1.NodeCaptureList {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := counters.Read(ctx, c.config)
	require.NoError(c, err)
	return list
}

// settle waits until all that was on the wires is seen and read and, for as long as a node may be behind with its report, nothing
// changes any more. If that does not come in time the account says what is wrong.
func (r *replay) settle(seconds int) {
	r.after = r.before
	known, since := "", time.Now()
	if err := r.try(func() {
		r.until(seconds, "all is seen and read", func() {
			time.Sleep(time.Second)
			r.after = r.counters()
			if now := counted(r.after); now != known {
				known, since = now, time.Now()
			}
			r.allRead()
			require.Greater(r, time.Since(since), 3*time.Second, "the counters move")
		})
	}); err != nil {
		r.Logf("%v", err)
	}
	r.writeJSON("after.json", r.after)
}

// counted is all that the nodes have counted, to compare.
func counted(list v1alpha1.NodeCaptureList) string {
	var all []any
	for _, node := range list.Items {
		all = append(all, node.Status.Rings, node.Status.Clusters)
	}
	data, _ := json.Marshal(all)
	return string(data)
}

func (r *replay) allRead() {
	for name, wire := range r.wires {
		seen := ringOf(nodeIn(r.after, name), r.Ring).Seen - ringOf(nodeIn(r.before, name), r.Ring).Seen
		require.GreaterOrEqual(r, seen, int64(wire.OnWire), "seen by %s", name)
		for _, queue := range queuesOf(nodeIn(r.after, name), r.Cluster) {
			require.Zero(r, queue.UnreadBytes, "%s: bytes of queue %d that are not read", name, queue.Queue)
		}
	}
}

// nodeIn is a node's report in a list, an empty one if it is not there.
func nodeIn(list v1alpha1.NodeCaptureList, name string) *v1alpha1.NodeCapture {
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i]
		}
	}
	return &v1alpha1.NodeCapture{}
}

// given are the packets of queues, delivered or dropped.
func given(queues []v1alpha1.QueueStatus) (sum int64) {
	for _, queue := range queues {
		sum += queue.Delivered
		for _, drop := range queue.Dropped {
			sum += drop.Packets
		}
	}
	return sum
}

// collect gets what the consumers have written since the beginning, each as a capture.
func (r *replay) collect() {
	for i, pod := range r.consumers {
		r.wroteFrom(&pod, pod.Name+".pcap", r.from[i])
	}
}

// wrote puts all that a pod has written into files like a pattern to where the account looks for what its consumer wrote.
func (r *replay) wrote(pod *corev1.Pod, files string) { r.wroteFrom(pod, files, allOfIt) }

func (r *replay) wroteFrom(pod *corev1.Pod, files, from string) {
	r.copyCaptures(pod, files, from, r.file(pod.Namespace+"_"+pod.Name+".pcap"))
}

// check accounts for every packet.
func (r *replay) check(options account.Options) account.Summary {
	summary, err := account.Summarize(r.Run, options)
	require.NoError(r, err)
	var text strings.Builder
	require.NoError(r, summary.Print(&text))
	r.Logf("%s", &text)
	r.writeJSON("summary.json", summary)
	require.Len(r, summary.Nodes, len(r.nodes), "nodes in the account")
	require.True(r, summary.AddsUp, "not every packet is accounted for:\n%s", strings.Join(summary.Problems, "\n"))
	return summary
}

// onWire are the packets that were on a node's wire.
func (r *replay) onWire(node string) int { return int(r.wires[node].OnWire) }

func (r *replay) file(name string) string { return filepath.Join(r.Folder, name) }

func (r *replay) writeJSON(name string, value any) {
	data, err := json.MarshalIndent(value, "", "  ")
	require.NoError(r, err)
	r.write(r.file(name), string(data))
}

// makeTrace writes a capture of real packets to replay.
func (c *Case) makeTrace(path string, atLeast int) {
	frames, _, err := trace.Collect(c.run("e2e/demo/captures"))
	require.NoError(c, err)
	c.writeFrames(path, frames, atLeast)
}

// writeFrames writes a capture of the frames, round after round until there are enough.
func (c *Case) writeFrames(path string, frames []trace.Frame, atLeast int) {
	file, err := os.Create(path)
	require.NoError(c, err)
	defer file.Close()
	out := bufio.NewWriter(file)
	_, err = trace.Write(out, frames, atLeast)
	require.NoError(c, errors.Join(err, out.Flush()))
}

// datagram is a frame with a UDP datagram to a port, whose checksum nobody looks at.
func (c *Case) datagram(to net.HardwareAddr, source, port int, payload []byte) trace.Frame {
	buffer := gopacket.NewSerializeBuffer()
	require.NoError(c, gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true},
		&layers.Ethernet{DstMAC: to, SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv4},
		&layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IPv4(192, 0, 2, 1), DstIP: net.IPv4(192, 0, 2, 2)},
		&layers.UDP{SrcPort: layers.UDPPort(source), DstPort: layers.UDPPort(port)}, gopacket.Payload(payload)))
	return bytes.Clone(buffer.Bytes())
}
