// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ringcap/ringcap/e2e/demo/account"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// The chart over its life: uninstalled while pods hold queues, with what users made kept, an earlier release installed, upgraded and rolled
// back under traffic, the module replaced when it is free, and uninstalled for good. What is there after each uninstall is in
// listing_test.go.
//
// The earlier release is this tree with another module (its source version and its version are others) and a CRD that lacks a field, under
// names of its own.

const (
	// The earlier is as long as the present one's, for it is written over that in the module.
	earlier, present = "0.0.9", "0.1.0"
	earlierSource    = "EARLIER0"
)

func (c *Case) helm(words ...string) {
	c.run(append([]string{"helm"}, append(words, "--namespace", system, "--wait", "--timeout", "250s")...)...)
}

var releaseValues = []string{"--set", "agent.maxUnavailable=100%", "--set", "cleanup.timeoutSeconds=240"}

// ---- the earlier release

func (c *Case) earlierChart() string { return c.file("chart") }

// makeEarlier makes its chart and images. The operator's image is the same by another name.
func (c *Case) makeEarlier() {
	require.NoError(c, os.CopyFS(c.earlierChart(), os.DirFS(filepath.Join(c.root, "charts/ringcap"))))
	c.editEarlier("Chart.yaml", `(?m)^(version|appVersion): .*`, "$1: "+earlier)
	c.editEarlier("files/crd/ringcap.io_capturerings.yaml", `(?m)^ {14}watermarkTimeout:\n(?: {15}.*\n)+`, "")

	// The agent's image with other modules.
	c.Cleanup(func() { c.bash("rm -f out/images/agent-earlier.*") })
	folder := c.file("agent")
	c.bash(`mkdir -p "$1"
		tar -xOf out/images/agent.tar layer.tar | tar -x -C "$1" --wildcards './modules/*/ringcap.ko'
		for module in "$1"/modules/*/ringcap.ko; do
			strip --strip-debug "$module"
			LC_ALL=C sed -i "s/srcversion=......../srcversion=$2/; s/$3/$4/g" "$module"
		done`, folder, earlierSource, present, earlier)
	c.provision("layer_over", "agent", "agent-earlier", folder)
	c.run("e2e/cluster/load-images")
	c.onAll("ctr -n k8s.io images tag --force " + c.imageOf("operator") + " ringcap.local/operator-earlier:operator-earlier")
}

// editEarlier replaces what is like the pattern in a file of the earlier chart.
func (c *Case) editEarlier(name, pattern, by string) {
	path := filepath.Join(c.earlierChart(), name)
	text := c.read(path)
	changed := regexp.MustCompile(pattern).ReplaceAllString(text, by)
	require.NotEqual(c, text, changed, "%s has nothing like %s", name, pattern)
	c.write(path, changed)
}

func (c *Case) installEarlier() {
	c.helm(append([]string{"install", "ringcap", c.earlierChart(), "--set", "operator.image.repository=ringcap.local/operator-earlier",
		"--set", "operator.image.tag=operator-earlier", "--set", "agent.image.repository=ringcap.local/agent-earlier",
		"--set", "agent.image.tag=agent-earlier"}, releaseValues...)...)
}

// upgradeToPresent installs the present one by digest, and with it the module when nobody has a queue of the loaded one.
func (c *Case) upgradeToPresent() {
	c.helm(append([]string{"upgrade", "ringcap", "charts/ringcap", "--set", "crds.keep=false", "--set", "agent.module.upgrade.policy=WhenFree",
		"--set", "operator.image.digest=" + c.byDigest("operator"), "--set", "agent.image.digest=" + c.byDigest("agent")}, releaseValues...)...)
	c.until(60, "the present release runs", func() { c.runs("ringcap.local/agent@", "ringcap.local/operator@", true) })
}

// byDigest is the digest of an image, by which the nodes' containerd knows it from now on.
func (c *Case) byDigest(name string) string {
	image := c.imageOf(name)
	digest := regexp.MustCompile("sha256:[0-9a-f]*").FindString(c.on(ebpf, "ctr -n k8s.io images ls name=="+image))
	require.NotEmpty(c, digest)
	c.onAll("ctr -n k8s.io images tag --force " + image + " ringcap.local/" + name + "@" + digest)
	return digest
}

// runs fails the case unless these are the images of ringcap's pods, each up to the tag or digest, and the CRD has the field or not.
func (c *Case) runs(agent, operator string, field bool) {
	images := map[string]bool{}
	for _, pod := range c.podsOf(system, "") {
		if pod.DeletionTimestamp == nil {
			for _, container := range pod.Spec.Containers {
				images[container.Image[:strings.IndexAny(container.Image, ":@")+1]] = true
			}
		}
	}
	require.Equal(c, map[string]bool{agent: true, operator: true}, images)
	crd := c.run("kubectl", "get", "crd", "capturerings.ringcap.io", "-o",
		"jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.watermarkTimeout.default}")
	require.Equal(c, field, crd != "", "whether the CRD has watermarkTimeout")
}

func (c *Case) earlierRuns() {
	c.runs("ringcap.local/agent-earlier:", "ringcap.local/operator-earlier:", false)
}

// moduleIs: what the kernel says, and the agent.
func (c *Case) moduleIs(version, source string) {
	require.Equal(c, source+"\n"+version, c.on(kmod, "cd /sys/module/ringcap && cut -c 1-8 srcversion && cat version"))
	require.Equal(c, version, c.nodeCapture(kmod).Status.ModuleVersion)
}

// moduleWaits: the loaded one stays, because of both consumers, and the one of the image is named.
func (c *Case) moduleWaits() {
	status := c.nodeCapture(kmod).Status
	require.True(c, strings.HasPrefix(status.ModuleAvailable, present+" ("), status.ModuleAvailable)
	is := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionModuleReady)
	require.True(c, is != nil && is.Reason == "InUse" && strings.Count(is.Message, demo+"/tcpdump-") == 2, "%+v", is)
}

func (c *Case) moduleDoesNotWait() { require.Empty(c, c.nodeCapture(kmod).Status.ModuleAvailable) }

// ---- install, upgrade, rollback, uninstall

func (c *Case) uninstall() error {
	_, err := c.pipe("", "helm", "uninstall", "ringcap", "--namespace", system, "--wait", "--timeout", "290s")
	return err
}

// uninstallWithConsumers: with consumers it waits and says for whom; when they are gone it goes on.
func (c *Case) uninstallWithConsumers() {
	gone := c.background(c.uninstall)
	c.until(100, "the cleanup names consumers", func() {
		require.Contains(c, c.run("kubectl", "-n", system, "logs", "job/ringcap-cleanup"), demo+"/tcpdump-")
	})
	c.run("kubectl", "-n", system, "get", "daemonset", "ringcap-agent")
	c.run("kubectl", "delete", "namespace", demo, pods, "--ignore-not-found")
	require.NoError(c, <-gone)
}

// madeByUsers has a line for each CaptureRing and Cluster, "KIND - NAME" and what only users write.
func (c *Case) madeByUsers() []string {
	return strings.Split(c.bash(`kubectl get capturerings,clusters.ringcap.io -o json | jq -r '.items[] |
		"\(.kind) - \(.metadata.name) \(.metadata | [.uid, .annotations, .labels]) \(.spec)"'`), "\n")
}

// uninstallKeeps: what users made stays as it was and is nobody's: an object that is deleted goes at once. It returns the listing then.
func (c *Case) uninstallKeeps() (listing []string) {
	c.ring("kept", "{interfaces: [{name: mirror0}], queues: 1}")
	c.ringsReady(60)
	made := c.madeByUsers()
	c.uninstallWithConsumers()
	kept := []string{"APIService - v1alpha1.ringcap.io"}
	for _, line := range made {
		kept = append(kept, begins(line))
	}
	for _, name := range []string{"capturerings", "clusters", "nodecaptures", "podcaptures"} {
		kept = append(kept, "CustomResourceDefinition - "+name+".ringcap.io")
	}
	listing = c.listingOnceRemoved("listing-before", kept)
	require.Equal(c, made, c.madeByUsers())
	require.Empty(c, c.run("kubectl", "get", "capturerings,clusters.ringcap.io", "-o", "jsonpath={.items[*].metadata.finalizers}"))
	c.run("kubectl", "delete", "capturering", "kept", "--timeout", "20s")
	return listing
}

// makeRings: a mirror port, and a card that is given other settings.
func (c *Case) makeRings() {
	c.until(60, "the API server takes rings", func() { c.run("kubectl", "apply", "--dry-run=server", "-f", "examples/mirror.yaml") })
	c.run("kubectl", "apply", "-f", "examples/mirror.yaml", "-f", "examples/tcpdump.yaml")
	c.ring("card", `{nodeSelector: {matchLabels: {ringcap.io/lab: kmod}}, interfaces: [{driver: igb}], queues: 1, slots: 1024,
		nic: {rxQueues: 1, rxRingSize: 512, vlanOffload: Disable}}`)
	c.ready(180)
}

func (c *Case) ringsReady(seconds int) { c.saysNothing(seconds, "state_unready") }

func (c *Case) upgradeAndRollBack() {
	c.upgradeToPresent()
	c.until(60, "the module waits", c.moduleWaits)
	c.moduleIs(earlier, earlierSource)
	c.helm("rollback", "ringcap", "1")
	c.until(60, "the earlier release runs", c.earlierRuns)
	c.until(60, "the module does not wait", c.moduleDoesNotWait)
	c.moduleIs(earlier, earlierSource)
}

func (c *Case) replaceModule(source string) {
	c.run("kubectl", "-n", demo, "scale", "deployment", "tcpdump", "--replicas", "0")
	c.until(60, "no consumer is left", func() { require.Empty(c, c.podsOf(demo, "")) })
	c.upgradeToPresent()
	c.until(60, "the module is replaced", func() { c.moduleIs(present, source) })
	c.moduleDoesNotWait()
	c.ringsReady(60)
}

// slow is the replay of a short capture, slowly.
func (c *Case) slow(name, input string) *replay {
	p := c.replay(name)
	p.input, p.rate = input, 1000
	return p
}

// TestRelease uninstalls what all other cases need: it runs only where -run names it, alone.
func TestRelease(t *testing.T) {
	if !strings.Contains(flag.Lookup("test.run").Value.String(), "Release") {
		t.Skip("uninstalls ringcap: run it last and alone, with -run TestRelease")
	}
	c := start(t)
	input := c.file("short.pcap")
	c.makeTrace(input, 1)
	source := c.on(kmod, "cut -c 1-8 /sys/module/ringcap/srcversion")
	c.makeEarlier()
	before := c.uninstallKeeps()

	// What was kept is captured again, by itself.
	c.installEarlier()
	c.earlierRuns()
	c.ringsReady(180)
	c.run("kubectl", "get", "capturering", "mirror")
	c.run("kubectl", "delete", "clusters.ringcap.io,capturerings", "--all", "--timeout", "120s")
	// Or the scheduler sends pods to queues that were there before.
	for _, node := range nodes {
		c.until(60, node+" offers no queues", func() { require.Contains(c, []string{"", "0"}, c.offered(node, "ringcap.io/ids")) })
	}
	c.makeRings()
	c.moduleIs(earlier, earlierSource)
	c.slow("upgrade", input).disturbed(under{at: 1000, disturb: c.upgradeAndRollBack}, lossless)
	// Nobody has a queue: the module is replaced, and each packet is counted as lost.
	c.replaceModule(source)
	for _, node := range c.slow("unattended", input).disturbed(under{}, account.Options{}).Nodes {
		var dropped uint64
		for _, queue := range node.Queues {
			dropped += queue.Drops()
		}
		require.Equal(t, node.Sent, dropped, "%s: packets that nobody read", node.Name)
	}

	lists(c, c.nodesListing(), append([]string{"node-kmod: .*igb_ringcap ", "node-kmod: /dev/ringcap/ids/0", "node-ebpf: unix socket .*ringcap"}, nicsTaken...)...)
	pinned := c.pinned()
	c.run("kubectl", "delete", "namespace", demo)
	require.NoError(t, c.uninstall())
	after := c.listingOnceRemoved("listing-after", nil)
	require.Equal(t, slices.DeleteFunc(before, regexp.MustCompile(`ringcap\.io |^(CaptureRing|Cluster) `).MatchString), after)
	c.until(90, "the kernel has freed maps, programs and links", func() { require.Empty(c, c.alive(pinned)) })
	c.kernelIsFine()
}
