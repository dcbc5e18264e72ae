// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
)

// The pods of a workload are captured on both nodes while their number changes, by a ring (examples/pods.yaml as it is) and by
// `ringcap capture deploy/web`. Each datagram that a pod sends is in both captures, once.

// sender is a pod that has sent so many datagrams.
type sender struct {
	pod  corev1.Pod
	sent int
}

// sends lets each pod of a workload send so many datagrams to port 9 of an address for documentation, which nobody has, at the same
// time.
func (c *Case) sends(namespace, part string, count int) ([]sender, func() error) {
	var senders []sender
	var all errgroup.Group
	for _, pod := range c.podsOf(namespace, "part="+part) {
		senders = append(senders, sender{pod, count})
		all.Go(func() error {
			// A packet a millisecond, or what an emulated node makes of that on a busy machine.
			_, err := c.execWithin(15*time.Minute, &pod, "", "send", "192.0.2.1", "9", fmt.Sprint(count))
			return err
		})
	}
	return senders, all.Wait
}

// sent is sends, once they have.
func (c *Case) sent(namespace, part string, count int) []sender {
	senders, wait := c.sends(namespace, part, count)
	require.NoError(c, wait())
	return senders
}

// hasAll fails the case unless a file has all datagrams of each sender, and no more.
func (c *Case) hasAll(file string, senders []sender) {
	for _, s := range senders {
		c.packets(s.sent, file, "udp dst port 9 and src host "+s.pod.Status.PodIP)
	}
}

// exactly waits until the files that the consumers of a namespace write, with a name in each, have all datagrams of those senders that are on
// their node, and nothing of others.
func (c *Case) exactly(namespace, label, name string, senders, others []sender) {
	for _, node := range nodes {
		var want []sender
		for _, s := range senders {
			if s.pod.Spec.NodeName == node {
				want = append(want, s)
			}
		}
		for _, s := range others {
			want = append(want, sender{s.pod, 0})
		}
		file := c.file("web-" + node + ".pcap")
		c.until(60, file+" has all datagrams", func() {
			c.copyCapture(c.podOn(node, namespace, label), name, file)
			c.hasAll(file, want)
		})
	}
}

// hasOwn fails the case unless a file of `ringcap capture` has all of a Deployment's own pods, by their names, and nothing of others.
func (c *Case) hasOwn(file string, own, others []sender) {
	text := c.read(file)
	c.hasAll(file, own)
	for _, s := range own {
		require.True(c, strings.Contains(text, s.pod.Spec.NodeName+"/shop/"+s.pod.Name), s.pod.Name)
	}
	for _, s := range others {
		c.hasAll(file, []sender{{s.pod, 0}})
		require.False(c, strings.Contains(text, "shop/"+s.pod.Name), s.pod.Name)
	}
}

// tapped waits until the interfaces of all pods that there are of shop, and no others, feed ring web-pods, and the status says whose
// they are.
func (c *Case) tapped() {
	c.until(60, "all pods are tapped", func() {
		var want, is []string
		for _, pod := range c.podsOf("shop", "app=web") {
			want = append(want, pod.Spec.NodeName+" shop/"+pod.Name)
		}
		for _, node := range nodes {
			for _, of := range c.nodeCapture(node).Status.Interfaces {
				if of.Pod != "" && slices.Contains(of.Rings, "web-pods") {
					is = append(is, node+" "+of.Pod)
				}
			}
		}
		require.ElementsMatch(c, want, is)
	})
}

func TestPodsComeAndGoAndNoneLosesAPacket(t *testing.T) {
	c := start(t)
	file := c.file("deploy.pcapng")
	shop := c.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	c.apply(c.web("shop", "web", 2))
	c.rolledOut(150, "deployment", "shop", "web")
	c.applyFile("examples/pods.yaml")
	c.ringIs("web-pods", "Ready", "True")
	c.rolledOut(150, "daemonset", "ringcap-pods", "tcpdump")
	c.tapped()
	stop := c.capture("-n", "shop", "capture", "deploy/web", "-w", file, "--slots", "16384")

	// These two send all the while.
	steady, wait := c.sends("shop", "web", 30000)
	sent := c.background(wait)
	deployment := c.apply(c.web("shop", "more", 4))
	c.rolledOut(150, "deployment", "shop", "more")
	c.tapped()
	more := c.sent("shop", "more", 500)
	c.remove(deployment)
	c.tapped()
	require.NoError(t, <-sent)
	require.Len(t, steady, 2)
	require.Len(t, more, 4)
	c.exactly("ringcap-pods", "app.kubernetes.io/name=tcpdump-pods", "web.pcap", append(steady, more...), nil)
	for _, node := range nodes {
		// A report that is made while packets come has ring and queues a moment apart.
		c.until(60, "ring and queues count the same", func() {
			report := nodeIn(c.counters(), node)
			ring := ringOf(report, "web-pods")
			require.Equal(c, ring.Seen, ring.Passed)
			require.Equal(c, ring.Passed, given(queuesOf(report, "web-pods")))
		})
	}

	c.arrives(60000, file, "udp dst port 9")
	c.says(stop(), ", 0 lost$")
	c.hasOwn(file, steady, more)
	c.ringcapLeftNothing()
	c.removeFile("examples/pods.yaml")
	c.remove(shop)
	for _, node := range nodes {
		c.until(90, "no pod is tapped on "+node, func() {
			for _, of := range c.nodeCapture(node).Status.Interfaces {
				require.Empty(c, of.Pod, of.Name)
			}
		})
	}
}
