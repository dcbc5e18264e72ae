// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// A ServiceAccount with the role edit in one namespace and no other right captures the pods of that namespace, by
// examples/podcapture.yaml: each datagram, once, on both engines. It reaches no other pods, and others do not get its packets. The same
// by `ringcap capture`.

const (
	team   = "web-team"
	editor = "--as=system:serviceaccount:" + team + ":editor"
)

// example is a file with the objects of examples/podcapture.yaml of one kind, or of all but that one.
func (c *Case) example(kind string, but bool) string {
	var of []string
	for _, object := range strings.Split(c.read("examples/podcapture.yaml"), "\n---\n") {
		if strings.Contains(object, "\nkind: ") && strings.Contains(object, "\nkind: "+kind+"\n") != but {
			of = append(of, object)
		}
	}
	require.NotEmpty(c, of)
	return c.write(c.file("example.yaml"), strings.Join(of, "\n---\n"))
}

// forbidden: the editor is refused for want of a right.
func (c *Case) forbidden(words ...string) {
	_, err := c.pipeWithin(answerTime, "", append([]string{"kubectl", editor}, words...)...)
	require.Error(c, err, "the editor may")
	require.Regexp(c, "(?i)forbidden", err.Error(), "refused, but not for want of a right")
}

// makeTeam makes the namespace, its editor, two pods by the editor, and pods of the same labels in another namespace, which it returns.
func (c *Case) makeTeam() *unstructured.Unstructured {
	c.Cleanup(func() { c.run("kubectl", "delete", "namespace", team, "--ignore-not-found", "--timeout=180s") })
	c.run("kubectl", "apply", "-f", c.example("Namespace", false))
	c.run("kubectl", "-n", team, "create", "serviceaccount", "editor")
	c.run("kubectl", "-n", team, "create", "rolebinding", "editor", "--clusterrole=edit", "--serviceaccount="+team+":editor")
	// The parts of the role edit are put together by a controller.
	c.until(60, "the editor may create PodCaptures", func() {
		require.Equal(c, "yes", c.run("kubectl", editor, "-n", team, "auth", "can-i", "create", "podcaptures"))
	})
	c.run("kubectl", editor, "apply", "-f", c.write(c.file("web.yaml"), c.web(team, "web", 2)))
	c.rolledOut(150, "deployment", team, "web")
	shop := c.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	c.apply(c.web("shop", "others", 2))
	c.rolledOut(150, "deployment", "shop", "others")
	return shop
}

func TestNamespaceCapturesItsOwnPods(t *testing.T) {
	c := start(t)
	shop := c.makeTeam()
	c.run("kubectl", editor, "apply", "-f", c.example("Namespace", true))
	// What pods sent before there was a consumer, by themselves, was dropped.
	captured := func(seconds int) {
		c.until(seconds, "the PodCapture has both pods and consumers", func() {
			status := get[v1alpha1.PodCapture](c, team, "web").Status
			require.True(c, status.Pods == 2 && status.QueuesAttached == 2 && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady), "%+v", status)
		})
	}
	captured(240)
	resource := c.run("kubectl", editor, "-n", team, "get", "podcapture", "web", "-o", "jsonpath={.status.resource}")
	ring := strings.TrimPrefix(resource, "ringcap.io/")

	const label, name = "app.kubernetes.io/name=tcpdump-podcapture", "web.pcap"
	others, ours := c.sent("shop", "others", 300), c.sent(team, "web", 5000)
	require.Len(t, others, 2)
	require.Len(t, ours, 2)
	c.exactly(team, label, name, ours, others)
	captured(60)

	c.teamByCommandLine()

	// What is done to the ring is undone.
	c.run("kubectl", "patch", "capturering", ring, "--type=merge", "-p",
		`{"spec":{"consumers":{"namespaces":["*"]},"interfaces":[{"podSelector":{}}]}}`)
	back := func() {
		c.until(60, "the ring is the team's", func() {
			consumers := get[v1alpha1.CaptureRing](c, "", ring).Spec.Consumers
			require.NotNil(c, consumers)
			require.Equal(c, []string{team}, consumers.Namespaces)
		})
	}
	back()
	c.ringIs(ring, "Ready", "True")
	ours = c.sent(team, "web", 500)
	for i := range ours {
		ours[i].sent += 5000 + 2000
	}
	c.exactly(team, label, name, ours, others)
	c.nobodyElses(resource)

	c.run("kubectl", editor, "-n", team, "delete", "podcapture", "web")
	c.run("kubectl", editor, "-n", team, "delete", "daemonset", "tcpdump", "--wait")
	gone := &v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: ring}}
	c.isGone(180, gone)

	// With the namespace goes what is in it.
	c.run("kubectl", editor, "apply", "-f", c.example("PodCapture", false))
	back()
	c.run("kubectl", "delete", "namespace", team, "--timeout=180s")
	c.remove(shop)
	c.isGone(120, gone)
}

// teamByCommandLine: the same, a PodCapture beside.
func (c *Case) teamByCommandLine() {
	file := c.file("team.pcapng")
	image := c.run("kubectl", "-n", system, "get", "daemonset", "ringcap-agent", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	stop := c.capture("-n", team, editor, "capture", "deploy/web", "-w", file, "--slots", "8192", "--image", image)
	senders := c.sent(team, "web", 2000)
	c.arrives(4000, file, "udp dst port 9")
	said := stop()
	require.Contains(c, said, "made PodCapture")
	c.says(said, ", 0 lost$")
	c.hasAll(file, senders)
	require.Equal(c, "podcapture.ringcap.io/web", c.run("kubectl", "-n", team, "get", "podcaptures", "-o", "name"))
}

// nobodyElses: neither may the editor capture elsewhere, nor pods of another namespace have the queues.
func (c *Case) nobodyElses(resource string) {
	elsewhere := strings.ReplaceAll(c.read(c.example("PodCapture", false)), "namespace: "+team, "namespace: shop")
	c.forbidden("create", "-f", c.write(c.file("elsewhere.yaml"), elsewhere))
	c.forbidden("get", "capturerings")
	c.forbidden("apply", "-f", "examples/pods.yaml")
	c.rejected(podFor("shop", resource), resource+" is not for pods of namespace shop")
}
