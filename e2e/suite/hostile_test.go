// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Consumers that do what none should: they get nothing that is not theirs, and harm nobody.

// probe runs the probe in a pod of this label on a node.
func (c *Case) probe(app, node string, words ...string) error {
	said, err := c.execWithin(answerTime, c.podOn(node, pods, "app="+app), "", append([]string{"probe"}, words...)...)
	c.Logf("%s: probe %s: %v\n%s", node, strings.Join(words, " "), err, said)
	return err
}

// refused fails the case unless the probe was refused what it asked for.
func (c *Case) refused(err error, words string) {
	require.Error(c, err, "was not refused")
	require.Regexp(c, "(?m)^refused.*"+words, err.Error(), "failed, but was not refused")
}

// Queues of ids, asked for by pods that were given none, or one of another cluster, as root in their containers.
func TestConsumerAsksForAForeignQueue(t *testing.T) {
	c := start(t)
	c.readyCluster("suite-foreign", "{rings: [mirror], queues: 1, slots: 64}")
	c.onEach("intruder", c.idle("suite-foreign"))
	for _, node := range nodes {
		c.refused(c.probe("intruder", node, "take", "ids", "0"), "")
	}
	// The sockets of other queues, through a folder of the host.
	c.refused(c.probe("intruder", ebpf, "socket", "/host-run/ids/0"), "")
	// A device node of its own making for another queue.
	var major, minor int
	_, err := fmt.Sscanf(c.on(kmod, `stat -c "%t %T" /dev/ringcap/ids/0`), "%x %x", &major, &minor)
	require.NoError(t, err)
	c.refused(c.probe("intruder", kmod, "node", fmt.Sprint(major), fmt.Sprint(minor)), "")
}

func TestConsumerScribblesOverWhatItMaps(t *testing.T) {
	c := start(t)
	c.readyCluster("suite-scribble", "{rings: [mirror], queues: 1, slots: 4096}")
	c.onEach("scribbler", c.idle("suite-scribble"))
	restarts := c.agentRestarts()
	r := c.replay("scribble")
	r.disturbed(under{at: 10000, disturb: func() {
		var done []<-chan error
		for _, pod := range c.podsOf(pods, "app=scribbler") {
			done = append(done, c.background(func() error {
				_, err := c.exec(&pod, "", "probe", "scribble", "suite-scribble", "0")
				return err
			}))
		}
		c.attached(60, "suite-scribble", []bool{true}, nodes...)
		r.more(r.onCables(), 50000)
		// Fails where none is alive any more. Those that are say then whether they could map what they must not.
		c.onAll("kill $(pidof probe)")
		for _, result := range done {
			require.NoError(t, <-result)
		}
	}}, lossless)
	require.Equal(t, restarts, c.agentRestarts(), "an agent restarted")
	// What the scribbler's own queue was given is named too.
	passed := func(list v1alpha1.NodeCaptureList) (ring, queues int64) {
		for _, node := range nodes {
			ring += ringOf(nodeIn(list, node), "mirror").Passed
			queues += given(queuesOf(nodeIn(list, node), "suite-scribble"))
		}
		return ring, queues
	}
	ringBefore, queuesBefore := passed(r.before)
	ring, queues := passed(r.after)
	require.Greater(t, ring, ringBefore, "the nodes report no packet")
	require.Equal(t, ring-ringBefore, queues-queuesBefore, "the scribbler's queue does not account for all that was passed")
	c.kernelIsFine()
}

// asUser asks at a queue's socket as a user of the node, in no pod, from a cgroup that is delegated to the user and that has the name
// which the kubelet gives to the pod of that UID.
func (c *Case) asUser(uid, folder string) error {
	said, err := c.pipeWithin(answerTime, "", "e2e/cluster/node-exec", ebpf, `uid=`+uid+` folder=`+folder+`
		top=/sys/fs/cgroup
		[ ! -d $top/memory ] || top=$top/memory
		mkdir -p $top/v1user/kubepods/pod$uid
		chown -R 65534:65534 $top/v1user
		for p in $(pidof sleep); do
			[ ! -x /proc/$p/root/bin/probe ] || cp /proc/$p/root/bin/probe /run/bystander
		done
		sh -c "echo \$\$ >$top/v1user/kubepods/pod$uid/cgroup.procs; exec start-stop-daemon -S -c 65534:65534 -x /run/bystander -- socket $folder" 2>&1
		said=$?
		rmdir $top/v1user/kubepods/pod$uid $top/v1user/kubepods $top/v1user
		rm /run/bystander
		exit $said`)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, said)
	}
	return err
}

// Refused by the folders; and where root has opened a way around these, by the agent.
func TestUserOfTheNodeAsksInTheNameOfAPod(t *testing.T) {
	c := start(t)
	c.onEach("bystander", c.idle(""))
	namespace, name, _ := strings.Cut(queuesOf(c.nodeCapture(ebpf), "ids")[0].Consumer, "/")
	uid := string(get[corev1.Pod](c, namespace, name).UID)
	c.refused(c.asUser(uid, "/run/ringcap/ids/0"), "Permission denied")
	c.Cleanup(func() { c.on(ebpf, "[ ! -e /run/open ] || { umount /run/open; rmdir /run/open; }") })
	c.on(ebpf, "mkdir /run/open && mount --bind /run/ringcap/ids/0 /run/open")
	c.refused(c.asUser(uid, "/run/open"), "the kubelet has not put it into the pod")
}
