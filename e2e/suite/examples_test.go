// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/ringcap/ringcap/e2e/demo/trace"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// The examples as they are, with the programs that they are for, and what their comments say to expect. pods.yaml is in pods_test.go,
// mirror.yaml and tcpdump.yaml are the demo's. sensors.yaml is used as docs/quickstart.md says.

const sensors = "ringcap-sensors"

// quickstart runs the commands of a section.
func (c *Case) quickstart(section string) {
	_, rest, _ := strings.Cut(c.read("docs/quickstart.md"), "\n## "+section+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	commands := ""
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(rest, -1) {
		commands += block[1]
	}
	require.NotEmpty(c, commands, "docs/quickstart.md has no commands in '%s'", section)
	c.run("bash", "-ex", "-c", commands)
}

// examples is one replay, and what programs make of all of it that read it as a file.
type examples struct {
	*replay
	alerts []string // of Suricata
	flows  string   // what softflowd says
	wanted int      // packets with the words of payload.yaml
}

// program is the pod of an example's program on a node.
func (e *examples) program(node, namespace, name string) *corev1.Pod {
	return e.podOn(node, namespace, "app.kubernetes.io/name="+name)
}

// Of Suricata's events: signatures of alerts; flows that have alerts, both directions as one; and what each capture thread has decoded, by
// the newest report.
const (
	alerts  = `inputs | select(.event_type == "alert") | .alert.signature`
	flows   = `inputs | select(.event_type == "alert") | [.proto, .vlan, ([[.src_ip, .src_port], [.dest_ip, .dest_port]] | sort)] | tostring`
	decoded = `[inputs | select(.event_type == "stats")] | last | .stats.threads | to_entries[] | select(.key | startswith("W#")) | .value.decoder.pkts`
)

// eve is the lines that a filter of jq's makes of Suricata's events, sorted.
func (e *examples) eve(filter string, files ...string) []string {
	said, err := e.pipe("", append([]string{"jq", "-nr", filter}, files...)...)
	require.NoError(e, err)
	lines := strings.FieldsFunc(said, func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return lines
}

// readAsFile has one Suricata and one softflowd read all of it, in their own containers.
func (e *examples) readAsFile() {
	input := e.read(e.input)
	suricata := e.program(ebpf, sensors, "suricata")
	_, err := e.exec(suricata, input, "sh", "-c", `mkdir /var/log/suricata/all && cd /var/log/suricata/all && cat >in.pcap &&
		suricata -r in.pcap -c /ringcap/ringcap.yaml -S /ringcap/ringcap.rules -l . >/dev/null`)
	require.NoError(e, err)
	e.fetch(suricata, "cat /var/log/suricata/all/eve.*.json", e.file("all.json"))
	e.alerts = e.eve(alerts, e.file("all.json"))
	require.Greater(e, len(e.alerts), 100, "one Suricata raises no alerts")
	e.flows, err = e.exec(e.program(ebpf, sensors, "softflowd"), input, "sh", "-c", "cat >/flows/in.pcap && softflowd -r /flows/in.pcap -v 9")
	require.NoError(e, err)
}

// countWanted counts the words that payload.yaml looks for, in the packets that its rules pass.
func (e *examples) countWanted() {
	e.run("tcpdump", "-r", e.input, "-w", e.file("rules.pcap"), "(tcp port 80 or udp port 53) and not net 192.0.2.0/28")
	words := regexp.MustCompile(`(?i)/etc/passwd|cmd\.exe|user-agent: scapy|\x07example\x03com\x00`)
	require.NoError(e, trace.Read(strings.NewReader(e.read(e.file("rules.pcap"))), func(p trace.Packet) error {
		if words.Match(p.Data) {
			e.wanted++
		}
		return nil
	}))
	require.Greater(e, e.wanted, 50, "the capture's packets with those words")
}

// suricata: all packets are decoded by its threads as they are queued, with the alerts of one that has all, and no flow is in two threads.
func (e *examples) suricata(node string) {
	pod := e.program(node, sensors, "suricata")
	var delivered []string
	var sum int64
	for _, queue := range queuesOf(nodeIn(e.after, node), "suricata") {
		delivered = append(delivered, fmt.Sprint(queue.Delivered))
		sum += queue.Delivered
	}
	require.EqualValues(e, e.onWire(node), sum, node)
	var files []string
	e.until(120, node+": Suricata has decoded all", func() {
		files = nil
		for _, name := range strings.Fields(e.in(pod, "sh", "-c", "cd /var/log/suricata; ls eve.*.json")) {
			files = append(files, e.file(node+"."+name))
			e.fetch(pod, "cat /var/log/suricata/"+name, e.file(node+"."+name))
		}
		require.ElementsMatch(e, delivered, e.eve(decoded, files...))
	})
	require.Equal(e, e.alerts, e.eve(alerts, files...), node)
	require.Len(e, e.alerts, e.number(e.bash("kubectl -n "+sensors+" logs "+pod.Name+` | grep -c '\[\*\*\] \[1:100000'`)), node)
	var all []string
	for _, file := range files {
		all = append(all, slices.Compact(e.eve(flows, file))...)
	}
	slices.Sort(all)
	require.Len(e, slices.Compact(slices.Clone(all)), len(all), "%s: flows are in both threads", node)
}

// softflowd counts as one that reads the whole capture.
func (e *examples) softflowd(node string) {
	said := ""
	e.until(60, node+": softflowd has all", func() {
		said = e.in(e.program(node, sensors, "softflowd"), "softflowctl", "-c", "/flows/softflowd.ctl", "statistics")
		e.says(said, fmt.Sprintf("^Packets received by libpcap: %d$", e.onWire(node)))
	})
	for _, what := range []string{"Packets processed", "Fragments", "Ignored packets"} {
		like := regexp.MustCompile("(?m)^" + what + ".*$")
		require.NotEmpty(e, like.FindString(e.flows))
		require.Equal(e, like.FindAllString(e.flows, -1), like.FindAllString(said, -1), node)
	}
	e.says(said, "^Packets dropped by libpcap: 0$")
}

// payload: the packets with the words, and no others, by the ring, in the file and by the words' own counters.
func (e *examples) payload(node string) {
	sent, ring := e.onWire(node), ringOf(nodeIn(e.after, node), "suspicious")
	require.Equal(e, fmt.Sprint(sent, sent-e.wanted, e.wanted), fmt.Sprint(ring.Seen, ring.Filtered, ring.Passed), "%s: seen, filtered, passed", node)
	file := e.file(node + ".found.pcap")
	e.copyCapture(e.program(node, "ringcap-payload", "tcpdump-payload"), "found.pcap", file)
	e.packets(e.wanted, file)
	byWords, of := 0.0, regexp.MustCompile(`(?m)^ringcap_payload_pattern_packets_total\{.*suspicious.* (\S+)$`)
	for _, match := range of.FindAllStringSubmatch(e.fetchURL("http://"+e.metricsOf(node)+"/metrics"), -1) {
		n, err := strconv.ParseFloat(match[1], 64)
		require.NoError(e, err)
		byWords += n
	}
	require.EqualValues(e, e.wanted, byWords, "%s: by words", node)
}

// quick: only the node with the module has it; on the other the pod waits.
func (e *examples) quick() {
	file := e.file("quick.pcap")
	e.copyCapture(e.program(kmod, "ringcap-quick", "tcpdump-quick"), "quick.pcap", file)
	e.packets(e.onWire(kmod), file)
	ring := ringOf(nodeIn(e.after, ebpf), "quick")
	require.Equal(e, "false EngineUnavailable", fmt.Sprint(ring.Ready, " ", ring.Reason))
	var waiting []string
	for _, pod := range e.podsOf("ringcap-quick", "") {
		for _, is := range pod.Status.Conditions {
			if pod.Status.Phase == corev1.PodPending && is.Type == corev1.PodScheduled {
				waiting = append(waiting, is.Message)
			}
		}
	}
	require.Len(e, waiting, 1)
	require.Contains(e, waiting[0], "Insufficient ringcap.io/quick")
}

// node: request and reply of each ping, and nothing but what the filter lets through.
func (e *examples) node(node, gateway string) {
	file, ip := e.file(node+".talk.pcap"), e.addressOf(node)
	filter := e.run("kubectl", "get", "capturering", "node-talk", "-o", "jsonpath={.spec.filter.bpf}")
	e.copyCapture(e.program(node, "ringcap-node", "tcpdump-node"), "node.pcap", file)
	e.packets(5, file, "icmp[icmptype] == 8 and src "+gateway+" and dst "+ip+" and ip[2:2] == 361")
	e.packets(5, file, "icmp[icmptype] == 0 and dst "+gateway+" and src "+ip+" and ip[2:2] == 361")
	e.packets(0, file, "not ("+filter+")")
}

// allCounted: rings and queues are counted a moment apart.
func (e *examples) allCounted() {
	e.after = e.counters()
	rings := map[string]string{"suricata": "span", "flows": "span", "watch": "span", "quick": "quick", "suspicious": "suspicious"}
	for _, node := range nodes {
		report := nodeIn(e.after, node)
		require.EqualValues(e, e.onWire(node), ringOf(report, "span").Seen, "%s: seen by span", node)
		for name, ring := range rings {
			queues := queuesOf(report, name)
			require.Equal(e, name == "quick" && node == ebpf, len(queues) == 0, "%s: %s has no queues", node, name)
			for _, queue := range queues {
				require.Zero(e, queue.UnreadBytes, "%s: %s", node, name)
			}
			if len(queues) > 0 {
				require.Equal(e, ringOf(report, ring).Passed, given(queues), "%s: %s", node, name)
			}
		}
	}
}

// haveConsumers waits until each queue that a node can have has its consumer.
func (e *examples) haveConsumers() {
	for name, read := range map[string][]bool{"suricata": {true, true}, "flows": {true}, "watch": {true}, "node-talk": {true}, "suspicious": {true}} {
		e.attached(240, name, read, nodes...)
	}
	e.attached(240, "quick", []bool{true}, kmod)
	e.attached(240, "quick", nil, ebpf)
}

func TestExamplesDoWhatTheySay(t *testing.T) {
	c := start(t)
	c.run("images/build", "suricata", "softflowd")
	c.run("e2e/cluster/load-images")
	e := &examples{replay: c.replay("replay").over("watch")}
	e.input, e.Ring = c.file("short.pcap"), "span"
	c.makeTrace(e.input, 15000)
	files := []string{"examples/payload.yaml", "examples/quick.yaml", "examples/node.yaml"}
	for _, file := range files {
		c.applyFile(file)
	}
	c.Cleanup(func() { c.removeFile("examples/sensors.yaml") })
	c.quickstart("A sensor")
	e.haveConsumers()
	e.begin()
	require.NoError(t, e.send())
	gateway := c.provision("eval", "echo $gateway")
	for _, node := range nodes {
		c.run("busybox", "ping", "-q", "-c", "5", "-s", "333", c.addressOf(node))
	}
	e.readAsFile()
	e.countWanted()
	c.until(120, "all is counted and read", e.allCounted)
	e.writeJSON("after.json", e.after)
	for _, node := range nodes {
		e.suricata(node)
		e.softflowd(node)
		e.node(node, gateway)
		e.payload(node)
		e.wrote(e.program(node, sensors, "tcpdump"), "watch.pcap0")
	}
	e.check(lossless)
	e.quick()
	for _, file := range files {
		c.removeFile(file)
	}
	c.quickstart("Alerts")
	c.quickstart("Simulate a failed sensor")
	c.until(60, "ringcap doctor warns", func() {
		said, _ := c.ringcap("doctor")
		require.Contains(c, said, "queues of flows: 2 of 2 have no reader")
	})
	c.removeFile("examples/sensors.yaml")
	c.until(60, "nothing of the examples is left", func() {
		var rings v1alpha1.CaptureRingList
		var clusters v1alpha1.ClusterList
		c.list(&rings)
		c.list(&clusters)
		require.Len(c, rings.Items, 1)
		require.Len(c, clusters.Items, 1)
	})
}
