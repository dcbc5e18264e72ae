// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/e2e/demo/trace"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// A sensor gets a virtual function by Multus and a queue of the ring over it (examples/sriov.yaml as it is), on the node with the module.
// Multus is the real one, by its own manifest; pool/ stands in for sriov-network-device-plugin.
//
//	wire1 (replay) ---cable--- card0 (igb) ~ virtual function ---> in the sensor's pod: net1 ---> ring virtual-functions ---> tcpdump

const (
	sriovRing      = "virtual-functions"
	sriovNamespace = "ringcap-sriov"
	sriovExample   = "examples/sriov.yaml"
)

// function is the virtual function.
type function struct {
	looks, name string // on the node
	mac         net.HardwareAddr
}

// functionLooks is the function's name, address and index while it is on the node.
func (c *Case) functionLooks() string {
	return c.on(kmod, `for i in /sys/class/net/card0/device/virtfn0/net/*; do [ ! -d $i ] || echo ${i##*/} $(cat $i/address $i/ifindex); done`)
}

// makeFunction makes one, so that the next pod has it again. What it looks like on the node is what it has to look like when it is back. A
// physical function of QEMU's card makes the wire wait, a virtual one loses what it has no descriptor for: its ring is to last while this
// machine does something else, two seconds at the rate of functionReplay.
func (c *Case) makeFunction() (f function) {
	c.Cleanup(func() { c.on(kmod, "echo 0 >/sys/class/net/card0/device/sriov_numvfs && modprobe -r igbvf") })
	c.on(kmod, "modprobe igbvf && echo 1 >/sys/class/net/card0/device/sriov_numvfs")
	c.until(90, "the function is on the node", func() {
		f.looks = c.functionLooks()
		require.NotEmpty(c, f.looks)
	})
	words := strings.Fields(f.looks)
	mac, err := net.ParseMAC(words[1])
	require.NoError(c, err)
	f.name, f.mac = words[0], mac
	c.on(kmod, "ethtool -G "+f.name+" rx 4096")
	return f
}

func (c *Case) poolHasFunction(seconds int) {
	c.until(seconds, "the kubelet offers the function", func() { require.Equal(c, "1", c.offered(kmod, "intel.com/sriov_capture")) })
}

// startMultus starts Multus and the pool. When the case ends they go in the opposite order: Multus leaves its configuration to those who
// remove it, and pods that it attached need it until they are gone.
func (c *Case) startMultus() {
	built := c.run("e2e/multus/build")
	c.provision("sriov_manifests", built, c.dir)
	c.upgrade("operator.networks.enabled=true,operator.networks.pools.enabled=true,operator.networks.pools.daemonSets={pool}")
	c.applyFile(c.file("multus.json"), "--cascade=foreground")
	c.Cleanup(func() {
		c.on(kmod, "rm -rf /etc/cni/net.d/00-multus.conf /etc/cni/multus && cd /opt/cni/bin && rm -f multus-shim passthru host-device")
	})
	c.applyFile(c.file("pool.yaml"), "--cascade=foreground")
	c.poolHasFunction(120)
	c.until(300, "Multus serves", func() { c.on(kmod, "ls /etc/cni/net.d/00-multus.conf") })
}

// poolIsOwned: the ring tells what is in its pool. Whose configuration is there already keeps it; when it is removed, the operator writes
// its own, and the device plugin reads it.
func (c *Case) poolIsOwned() {
	c.run("kubectl", "patch", "capturering", sriovRing, "--type=json", "-p", `[{"op": "add", "path": "/spec/interfaces/0/pool", "value":
		{"vendors": ["8086"], "devices": ["10ca"], "drivers": ["igbvf"]}}]`)
	c.ringIs(sriovRing, "NetworksWritten", "False PoolConflict")
	c.run("kubectl", "-n", "kube-system", "delete", "configmap", "sriovdp-config")
	c.ringIs(sriovRing, "NetworksWritten", "True")
	require.NotEmpty(c, c.run("kubectl", "-n", "kube-system", "get", "daemonset", "pool", "-o",
		`jsonpath={.spec.template.metadata.annotations.ringcap\.io/pools}`))
	c.rolledOut(120, "daemonset", "kube-system", "pool")
	c.poolHasFunction(60)
}

// sensor waits until a sensor has the queue and, by the node's report, the function.
func (c *Case) sensor(f function) (sensor *corev1.Pod) {
	c.until(120, "the sensor has the function and its queue", func() {
		sensor = c.podOn(kmod, sriovNamespace, "app.kubernetes.io/name=sensor-sriov")
		report, name := c.nodeCapture(kmod), sriovNamespace+"/"+sensor.Name
		queues := queuesOf(report, sriovRing)
		require.True(c, len(queues) == 1 && queues[0].Attached && queues[0].Consumer == name, "%+v", queues)
		require.True(c, slices.ContainsFunc(report.Status.Interfaces, func(is v1alpha1.InterfaceStatus) bool {
			return is.Name == f.name && is.Pod == name && slices.Contains(is.Rings, sriovRing)
		}), "%+v", report.Status.Interfaces)
	})
	return sensor
}

// received is the driver's own count of what came.
func (c *Case) received(sensor *corev1.Pod) int {
	return c.number(c.in(sensor, "cat", "/sys/class/net/net1/statistics/rx_packets"))
}

// functionSeen is what the ring has seen, once its queue has had it all: they are counted a moment apart.
func (c *Case) functionSeen() int64 {
	report := nodeIn(c.counters(), kmod)
	seen, queues := ringOf(report, sriovRing).Seen, queuesOf(report, sriovRing)
	require.Len(c, queues, 1)
	require.Equal(c, seen, given(queues), "the ring has seen, its queue had")
	return seen
}

// numbered are datagrams to the function, each with its number, of eight flows.
func (c *Case) numbered(f function, port, count int) (frames []trace.Frame) {
	for number := range count {
		frames = append(frames, c.datagram(f.mac, 1000+number%8, port, fmt.Appendf(nil, "%032d", number)))
	}
	return frames
}

// functionReplay: each of the numbered packets that are on the wire is received by the function, seen by the ring, and in the sensor's file
// once and unchanged; and nothing else is.
func (c *Case) functionReplay(f function, sensor *corev1.Pod, name string) {
	const packets = 5000
	first := c.file("first.pcap")
	c.writeFrames(first, c.numbered(f, 10, 1), 1)
	c.until(120, "the card forwards: one that has just come up does not yet", func() {
		before := c.functionSeen()
		c.run("ip", "netns", "exec", "rc-wire-kmod", "tcpreplay", "--quiet", "--intf1=wire1", first)
		c.until(15, "the ring sees it", func() { require.Greater(c, c.functionSeen(), before) })
	})
	r := c.replay(name).over(sriovRing)
	r.input, r.nodes, r.wire, r.rate = r.file("numbered.pcap"), []string{kmod}, "wire1", 2000
	c.writeFrames(r.input, c.numbered(f, 9, packets), packets)
	received := c.received(sensor)
	r.begin()
	require.NoError(c, r.send())
	r.settle(60)
	all := r.file("all.pcap")
	c.copyCapture(sensor, "vf.pcap", all)
	c.run("tcpdump", "-r", all, "-w", r.file(sensor.Namespace+"_"+sensor.Name+".pcap"), "udp dst port 9")
	c.packets(0, all, "not (udp dst port 9 or udp dst port 10)")
	r.check(lossless)
	c.until(90, "the driver has counted each packet", func() { require.Equal(c, packets, c.received(sensor)-received) })
}

func TestSriovFunctionAndQueue(t *testing.T) {
	c := start(t)
	c.Cleanup(c.kernelIsFine) // when all is gone
	f := c.makeFunction()
	c.startMultus()
	c.applyFile(sriovExample)
	first := c.sensor(f)
	c.ringIs(sriovRing, "NetworksWritten", "True")
	require.Equal(t, "0000:01:10.0", c.in(first, "sh", "-c", "echo $PCIDEVICE_INTEL_COM_SRIOV_CAPTURE"))
	require.Equal(t, f.mac.String(), c.in(first, "cat", "/sys/class/net/net1/address"))
	c.functionReplay(f, first, "first")

	c.run("kubectl", "-n", sriovNamespace, "scale", "deployment", "sensor", "--replicas=0")
	c.isGone(60, first)
	require.Equal(t, f.looks, c.functionLooks(), "the function on the node again")
	c.poolIsOwned()
	c.run("kubectl", "-n", sriovNamespace, "scale", "deployment", "sensor", "--replicas=1")
	c.functionReplay(f, c.sensor(f), "second")

	c.removeFile(sriovExample)
	c.isGone(90, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "sriovdp-config"}})
}
