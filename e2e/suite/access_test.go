// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Which pods may have queues, and what they are given.

// closeTo lets only the pods of one namespace have queues of suite-closed, on all nodes from now on.
func (c *Case) closeTo(namespace string) *unstructured.Unstructured {
	return c.readyCluster("suite-closed", "{rings: [mirror], queues: 1, slots: 64, consumers: {namespaces: ["+namespace+"]}}")
}

// podFor is a pod that requests a queue.
func podFor(namespace, resource string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: consumer, namespace: " + namespace + "}, " +
		"spec: {containers: [{name: c, image: x, resources: {limits: {" + resource + ": 1}}}]}}"
}

// Refused when it is made; and where it was made before the namespace was taken out, at its next start.
func TestPodOfAnotherNamespace(t *testing.T) {
	c := start(t)
	c.closeTo(pods)
	c.rejected(podFor("default", "ringcap.io/suite-closed"), "spec.consumers of Cluster suite-closed names "+pods+"; ")
	c.onEach("inside", c.idle("suite-closed"))
	for _, node := range nodes {
		require.NoError(t, c.probe("inside", node, "take", "suite-closed", "0"))
	}

	c.closeTo("elsewhere")
	c.refused(c.probe("inside", ebpf, "take", "suite-closed", "0"), "")
	c.onAll("for p in $(pidof sleep); do ! grep -q infinity /proc/$p/cmdline || kill -9 $p; done")
	c.told(60, pods, 2, "Pod/.*may not have queues of suite-closed: spec.consumers of Cluster suite-closed names elsewhere, not "+pods)

	c.closeTo(pods)
	// Between attempts the kubelet waits longer each time.
	c.until(180, "the containers start again", func() {
		inside := c.podsOf(pods, "app=inside")
		require.Len(c, inside, 2)
		for _, pod := range inside {
			require.Len(c, pod.Status.ContainerStatuses, 1, pod.Name)
			is := pod.Status.ContainerStatuses[0]
			require.NotNil(c, is.State.Running, pod.Name)
			require.EqualValues(c, 1, is.RestartCount, pod.Name)
		}
	})
}

// A ring that names nobody is nobody's, and a Cluster is no wider than its ring, whatever it says.
func TestNobodyButWhoIsNamed(t *testing.T) {
	c := start(t)
	ring := func(consumers string) { c.ring("suite-ring", "{interfaces: [{name: mirror0}]"+consumers+"}") }
	ring("")
	c.readyCluster("suite-wide", "{rings: [suite-ring], queues: 1, slots: 64, consumers: {namespaces: ['*']}}")
	c.clusterIs("suite-wide", "ConsumersEffective", "False NobodyAllowed .*CaptureRing suite-ring names no namespace")
	c.pod("wide", c.idle("suite-wide"))
	c.told(120, pods, 1, "Pod/wide .*spec.consumers of CaptureRing suite-ring names no namespace")
	ring(", consumers: {namespaces: [elsewhere]}")
	c.told(120, pods, 1, "Pod/wide .*spec.consumers of CaptureRing suite-ring names elsewhere, not "+pods)
	said, status := c.ringcap("capture", "suite-ring", "-w", c.file("none.pcapng"))
	require.Equal(t, 1, status)
	require.Contains(t, said, `"namespaces":["elsewhere","default"]`)
	ring(", consumers: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: " + pods + "}}}")
	c.until(360, "the pod runs", func() { require.Equal(c, corev1.PodRunning, get[corev1.Pod](c, pods, "wide").Status.Phase) })
}

// A consumer whose namespace is taken out of the list loses its queue while it runs, on both engines, and cannot come back.
func TestQueueIsTakenBack(t *testing.T) {
	c := start(t)
	cluster := c.closeTo(pods)
	c.onEach("inside", c.idle("suite-closed"))
	for _, node := range nodes {
		pod := c.podOn(node, pods, "app=inside")
		c.background(func() error {
			_, err := c.exec(pod, "", "probe", "scribble", "suite-closed", "0")
			return err
		})
	}
	c.attached(60, "suite-closed", []bool{true}, nodes...)
	c.closeTo("elsewhere")
	c.attached(60, "suite-closed", []bool{false}, nodes...)
	c.told(90, "default", 2,
		`.* QueueTakenBack: .*queue 0 of suite-closed was taken back from process [0-9]+ \(probe\).* may not have queues of suite-closed`)
	c.refused(c.probe("inside", ebpf, "take", "suite-closed", "0"), "")
	// Those who had the queues hold what is left of them, and keep nobody from removing them.
	c.remove(cluster)
}

// Every packet of a replay is in the files of three images' programs, on both engines.
func TestStockImagesCapture(t *testing.T) {
	c := start(t)
	c.provision("stock_images")
	cluster := c.readyCluster("suite-stock", "{rings: [mirror], queues: 3, slots: 8192, consumers: {injectLibpcap: true}}")
	const pcapdump = "[pcapdump, rc-suite-stock, /captures/0.pcap]"
	images := map[string]string{"stock-rhel": pcapdump, "stock-alpine": pcapdump,
		"stock-debian": "[tcpdump, -i, rc-suite-stock, -n, -U, -w, /captures/0.pcap]"}
	var sets []*unstructured.Unstructured
	for name, command := range images {
		sets = append(sets, c.onEach(name, consumer(c.imageOf(name), command, "suite-stock")))
	}
	c.attached(240, "suite-stock", []bool{true, true, true}, nodes...)
	c.onAll("grep ringcap.io/queue /var/run/cdi/ringcap.io-suite-stock.json")
	r := c.replay("stock")
	r.disturbed(under{}, lossless)
	for name := range images {
		for _, pod := range c.podsOf(pods, "app="+name) {
			r.wrote(&pod, "*.pcap")
		}
	}
	r.Cluster = "suite-stock"
	r.check(lossless)
	for _, set := range append(sets, cluster) {
		c.remove(set)
	}
	for _, node := range nodes {
		c.until(60, node+" is tidy", func() {
			require.Empty(c, c.on(node, `for file in /var/run/cdi/ringcap.io-suite-stock.json /var/lib/kubelet/plugins/ringcap.io/*/*; do
				[ ! -e "$file" ] || echo "$file"
			done`))
		})
	}
}
