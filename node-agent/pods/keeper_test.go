// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/operator/api/consumers"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// keeperLab is a node whose queue 0 of ids is held by process 10.
type keeperLab struct {
	*Keeper
	proc   string
	groups string
	now    time.Time
	pods   []NodePod
	stale  []NodePod // what the API server's cache still has, if it is not that
	err    error
	asks   int
	owners []Pod
	asked  bool
}

func newKeeperLab(t *testing.T) *keeperLab {
	l := &keeperLab{proc: t.TempDir(), groups: t.TempDir(), now: time.Unix(1000, 0), asked: true}
	l.Keeper = &Keeper{
		Access: Access{Proc: l.proc, Cgroups: Cgroups(l.groups), Namespaces: NewNamespaces()}, Grace: 10 * time.Second, Now: func() time.Time { return l.now },
		Node: func(_ context.Context, latest bool) ([]NodePod, error) {
			l.asks++
			if !latest && l.stale != nil {
				return l.stale, l.err
			}
			return l.pods, l.err
		},
	}
	l.Access.Namespaces.Set(map[string]consumers.Rule{"ids": rule("sensors")})
	l.inNamespace(t, 1, "1")
	return l
}

func (l *keeperLab) process(t *testing.T, pid int, state, cgroup string) {
	t.Helper()
	folder := filepath.Join(l.proc, strconv.Itoa(pid))
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "fd"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "stat"), fmt.Appendf(nil, "%d (tcp) dump) %s 1 1", pid, state), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cgroup"), []byte(cgroup), 0o644))
	if cgroup == ofPod {
		put(t, l.groups, "kubepods/pod"+uid+"/abc", pid)
	}
}

// inNamespace puts a process into a mount namespace. The node's is that of process 1.
func (l *keeperLab) inNamespace(t *testing.T, pid int, name string) {
	t.Helper()
	folder := filepath.Join(l.proc, strconv.Itoa(pid), "ns")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, os.Symlink("mnt:["+name+"]", filepath.Join(folder, "mnt")))
}

const ofPod = "0::/kubepods/pod" + uid + "/abc\n"

var (
	held   = Holding{Queue: capture.QueueID{Cluster: "ids"}, PID: 10}
	podA   = Pod{"sensors", "a"}
	theirs = NodePod{Pod: podA, UIDs: []string{uid}, Queues: map[string]int{"ids": 1}}
)

func (l *keeperLab) look() []Overstay {
	return l.Overstays(context.Background(), []Holding{held}, map[capture.QueueID][]Pod{held.Queue: l.owners}, func(string) bool { return l.asked })
}

// after a time of grace in which nothing happened.
func (l *keeperLab) after() []Overstay {
	l.look()
	l.now = l.now.Add(11 * time.Second)
	return l.look()
}

func TestWhoKeepsAQueueThatIsNotTheirs(t *testing.T) {
	b := NodePod{Pod: Pod{"sensors", "b"}, UIDs: []string{other}, Queues: map[string]int{"ids": 1}}
	ended, elsewhere := theirs, theirs
	ended.Ended, elsewhere.Queues = true, nil
	for name, test := range map[string]struct {
		state, cgroup string // empty: the process has ended
		namespace     string
		owners        []Pod
		pods          []NodePod
		namespaces    []string
		never         bool // was the namespace permitted
		deleted       bool
		want          string
	}{
		"its pod's":                          {state: "S", cgroup: ofPod, owners: []Pod{podA}, pods: []NodePod{theirs, b}},
		"another pod's":                      {state: "S", cgroup: ofPod, owners: []Pod{b.Pod}, pods: []NodePod{theirs, b}, want: "the kubelet gave it to pod sensors/b"},
		"of a pod that the API server lacks": {state: "S", cgroup: ofPod, owners: []Pod{podA}},
		"of a pod that is gone":              {state: "S", cgroup: ofPod, pods: []NodePod{b}, want: "its pod (UID " + uid + ") is gone"},
		"of a pod of the same name":          {state: "S", cgroup: ofPod, owners: []Pod{podA}, pods: []NodePod{{Pod: podA, UIDs: []string{other}}}, want: "the kubelet gave it to pod sensors/a"},
		"of a pod that ended":                {state: "S", cgroup: ofPod, pods: []NodePod{ended}, want: "pod sensors/a has ended"},
		"of a pod that does not want it":     {state: "S", cgroup: ofPod, pods: []NodePod{elsewhere}, want: "pod sensors/a does not request it"},
		"an init container's":                {state: "S", cgroup: ofPod, pods: []NodePod{theirs}},
		"of a namespace that may not":        {state: "S", cgroup: ofPod, owners: []Pod{podA}, pods: []NodePod{theirs}, namespaces: []string{"lab"}, want: "spec.consumers of CaptureRing ids names lab, not sensors"},
		"of one that never might":            {state: "S", cgroup: ofPod, owners: []Pod{podA}, pods: []NodePod{theirs}, namespaces: []string{"lab"}, never: true},
		"of one, and its pod is gone":        {state: "S", cgroup: ofPod, pods: []NodePod{b}, namespaces: []string{"lab"}, never: true, want: "its pod (UID " + uid + ") is gone"},
		"of one, and it is another's":        {state: "S", cgroup: ofPod, owners: []Pod{b.Pod}, pods: []NodePod{theirs, b}, namespaces: []string{"lab"}, never: true, want: "the kubelet gave it to pod sensors/b"},
		"of one, in an init container":       {state: "S", cgroup: ofPod, pods: []NodePod{theirs}, namespaces: []string{"lab"}, never: true},
		"of one, of a child":                 {pods: []NodePod{theirs}, namespaces: []string{"lab"}, never: true},
		"the same, in an init container":     {state: "S", cgroup: ofPod, pods: []NodePod{theirs}, namespaces: []string{"lab"}, want: "names lab, not sensors"},
		"of a ring that names nobody":        {state: "S", cgroup: ofPod, owners: []Pod{podA}, pods: []NodePod{theirs}, namespaces: []string{}},
		"of a set that nobody asks for":      {state: "S", cgroup: ofPod, owners: []Pod{podA}, pods: []NodePod{theirs}, namespaces: []string{"lab"}, deleted: true},
		"of nobody any more":                 {pods: []NodePod{elsewhere}, want: "no pod has it, and none that requests it waits for it"},
		"of a child, its pod has it":         {owners: []Pod{podA}, pods: []NodePod{theirs}},
		"of a child, in an init container":   {pods: []NodePod{theirs}},
		"of a child, a namespace may not":    {owners: []Pod{podA}, pods: []NodePod{theirs}, namespaces: []string{"lab"}, want: "names lab, not sensors"},
		"of a zombie's child":                {state: "Z", cgroup: "0::/\n", owners: []Pod{podA}, pods: []NodePod{theirs}},
		"the administrator's":                {state: "S", cgroup: "0::/user.slice\n", namespace: "1"},
		"of a pod that is not found":         {state: "S", cgroup: "0::/odd\n", namespace: "2", owners: []Pod{podA}, pods: []NodePod{theirs}},
		"of one, and nobody's":               {state: "S", cgroup: "0::/odd\n", namespace: "2", want: "no pod has it"},
		"the administrator's, and now a pod": {state: "S", cgroup: "0::/user.slice\n", namespace: "1", owners: []Pod{podA}, pods: []NodePod{theirs}, want: "the kubelet gave it to pod sensors/a"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newKeeperLab(t)
			if test.state != "" {
				l.process(t, 10, test.state, test.cgroup)
				l.inNamespace(t, 10, test.namespace)
			}
			if !test.never {
				l.owners = []Pod{podA}
				l.look()
			}
			if test.namespaces != nil {
				l.Access.Namespaces.Set(map[string]consumers.Rule{"ids": rule(test.namespaces...)})
			}
			l.owners, l.pods, l.asked = test.owners, test.pods, !test.deleted
			assert.Empty(t, l.look(), "it has the time of grace")
			assert.Zero(t, l.asks)
			got := l.after()
			if test.want == "" {
				assert.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			assert.Equal(t, held, got[0].Holding)
			assert.Contains(t, got[0].Why, test.want)
		})
	}
}

// A process attached and ended. Its queue stays with its children, and any other process may get its number.
func TestANumberOfAnotherProcess(t *testing.T) {
	l := newKeeperLab(t)
	put(t, l.groups, "kubepods/pod"+other+"/abc", 10)
	began := func(when string) {
		l.process(t, 10, "S", "0::/kubepods/pod"+other+"/abc\n")
		stat := "10 (snort) S" + strings.Repeat(" 1", 18) + " " + when + " 1 1"
		require.NoError(t, os.WriteFile(filepath.Join(l.proc, "10", "stat"), []byte(stat), 0o644))
	}
	l.pods = []NodePod{theirs, {Pod: Pod{"sensors", "b"}, UIDs: []string{other}}}
	for name, first := range map[string]string{"it ended before": "", "it ended since": "500"} {
		t.Run(name, func(t *testing.T) {
			l.owners = nil
			l.Overstays(t.Context(), nil, nil, nil)
			require.NoError(t, os.RemoveAll(filepath.Join(l.proc, "10")))
			if first != "" {
				began(first)
			}
			l.look()
			began("501")
			l.owners = []Pod{podA}
			assert.Empty(t, l.after())
			assert.Contains(t, l.Who(held), "which has ended")
		})
	}
	l.owners = nil
	l.Overstays(t.Context(), nil, nil, nil)
	l.owners = []Pod{podA}
	assert.Len(t, l.after(), 1, "attached by the process that has the number now")
}

// A holder that may be the pod that the queue is allocated to is left alone.
func TestAHolderThatIsNotKnown(t *testing.T) {
	l := newKeeperLab(t)
	nobody := []Holding{{Queue: held.Queue}}
	l.pods = []NodePod{theirs}
	look := func(owners ...Pod) []Overstay {
		allocations := map[capture.QueueID][]Pod{held.Queue: owners}
		l.Overstays(t.Context(), nobody, allocations, func(string) bool { return true })
		l.now = l.now.Add(11 * time.Second)
		return l.Overstays(t.Context(), nobody, allocations, func(string) bool { return true })
	}
	assert.Empty(t, look(podA))
	l.Access.Namespaces.Set(map[string]consumers.Rule{"ids": rule("lab")})
	assert.Empty(t, look(podA))
	assert.True(t, l.kept[nobody[0]], "it was said")
	l.pods = nil
	assert.Len(t, look(), 1)
}

// A process that repeatedly opens a device node, each time as another process, does not start a new grace period.
func TestOpeningAgainGainsNoTime(t *testing.T) {
	l := newKeeperLab(t)
	l.owners, l.pods = []Pod{podA}, []NodePod{theirs}
	l.process(t, 10, "S", ofPod)
	l.look()
	l.Access.Namespaces.Set(map[string]consumers.Rule{"ids": rule("lab")})
	for pid := 11; pid < 20; pid++ {
		h := Holding{Queue: held.Queue, PID: min(pid, 17)} // or the same one
		l.process(t, h.PID, "S", ofPod)
		taken := l.Overstays(t.Context(), []Holding{h}, map[capture.QueueID][]Pod{held.Queue: l.owners}, func(string) bool { return true })
		assert.Equal(t, pid > 15, len(taken) == 1, "%d seconds after", 2*(pid-11))
		l.Overstays(t.Context(), nil, nil, nil) // it is between two
		l.now = l.now.Add(2 * time.Second)
	}
	l.now = l.now.Add(time.Hour)
	assert.Empty(t, l.look(), "that was another time")
}

// A namespace that is no longer permitted loses its queues, including those that a process attaches to afterwards. A
// namespace that is permitted again keeps them.
func TestAnExclusionIsRemembered(t *testing.T) {
	l := newKeeperLab(t)
	l.process(t, 10, "S", ofPod)
	l.owners, l.pods = []Pod{podA}, []NodePod{theirs}
	allocations := map[capture.QueueID][]Pod{held.Queue: l.owners}
	assert.Empty(t, l.Overstays(t.Context(), nil, allocations, func(string) bool { return true }), "it has not attached yet")
	l.Access.Namespaces.Set(map[string]consumers.Rule{"ids": rule("lab")})
	assert.Len(t, l.after(), 1)
	l.Access.Namespaces.Set(map[string]consumers.Rule{"ids": rule("sensors")})
	assert.Empty(t, l.after())
}

// Labels that cannot be read are no reason to take a queue from anybody.
func TestLabelsThatCannotBeRead(t *testing.T) {
	l := newKeeperLab(t)
	l.process(t, 10, "S", ofPod)
	l.owners, l.pods = []Pod{podA}, []NodePod{theirs}
	l.Access.Namespaces.KnownLabels = func(context.Context, string) (map[string]string, error) { return nil, errors.New("no route to host") }
	l.Access.Namespaces.Set(map[string]consumers.Rule{"ids": {consumers.OfRing("ids", &v1.Consumers{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "soc"}},
	})}})
	assert.Empty(t, l.after())
	l.Access.Namespaces.KnownLabels = func(context.Context, string) (map[string]string, error) { return map[string]string{"team": "soc"}, nil }
	assert.Empty(t, l.after())
	l.Access.Namespaces.KnownLabels = func(context.Context, string) (map[string]string, error) { return map[string]string{"team": "web"}, nil }
	require.Len(t, l.after(), 1)
}

// Once the kubelet reports a queue's pod, the API server is asked once, until the allocation changes.
func TestConsumersInOrderCostNothing(t *testing.T) {
	l := newKeeperLab(t)
	l.process(t, 10, "S", ofPod)
	l.owners, l.pods = []Pod{podA}, []NodePod{theirs}
	for range 5 {
		assert.Empty(t, l.after())
	}
	assert.Equal(t, 1, l.asks)
	l.pods, l.owners = nil, nil
	assert.Empty(t, l.look())
	l.owners = []Pod{podA}
	assert.Empty(t, l.look(), "the kubelet has it again, as after its own start")
	l.now = l.now.Add(5 * time.Second)
	assert.Empty(t, l.look())
}

// For a holding that the kubelet has not allocated, the API server is asked at growing intervals.
func TestWhatIsLetPassIsAskedAboutLessOften(t *testing.T) {
	l := newKeeperLab(t)
	l.process(t, 10, "S", ofPod)
	l.pods = []NodePod{theirs}
	for range 3600 / 2 {
		assert.Empty(t, l.look())
		l.now = l.now.Add(2 * time.Second)
	}
	assert.InDelta(t, 15, l.asks, 2)
	l.pods = nil
	for range 300 / 2 {
		l.now = l.now.Add(2 * time.Second)
		if len(l.look()) > 0 {
			return
		}
	}
	assert.Fail(t, "a pod that is gone keeps its queue")
}

// The API server's cache may not have a new pod yet.
func TestNobodyLosesAQueueByACache(t *testing.T) {
	l := newKeeperLab(t)
	l.process(t, 10, "S", ofPod)
	l.pods, l.stale = []NodePod{theirs}, []NodePod{}
	assert.Empty(t, l.after())
	l.owners, l.pods = []Pod{{"sensors", "b"}}, []NodePod{theirs, {Pod: Pod{"sensors", "b"}, UIDs: []string{other}}}
	assert.Len(t, l.after(), 1)
}

// The time of grace begins when the pod goes, also for a consumer that has just attached.
func TestGraceBeginsWhenThePodGoes(t *testing.T) {
	l := newKeeperLab(t)
	l.process(t, 10, "S", ofPod)
	l.owners = []Pod{podA}
	assert.Empty(t, l.look())
	l.now = l.now.Add(9 * time.Second)
	l.owners = nil
	assert.Empty(t, l.look())
	l.now = l.now.Add(9 * time.Second)
	assert.Empty(t, l.look())
	l.now = l.now.Add(2 * time.Second)
	assert.Len(t, l.look(), 1)
}

func TestWhatIsNotKnownTakesNothing(t *testing.T) {
	l := newKeeperLab(t)
	l.process(t, 10, "S", ofPod)
	l.err = errors.New("no API server")
	assert.Empty(t, l.after())
	assert.Empty(t, l.look())
	assert.Equal(t, 1, l.asks, "not asked at each look")
	l.err = nil
	assert.Len(t, l.after(), 1)
}

func TestWho(t *testing.T) {
	l := newKeeperLab(t)
	assert.Equal(t, "a process that is not visible to the agent, with the descriptors of process 10, which has ended", l.Who(held))
	assert.Equal(t, "a process that is not visible to the agent", l.Who(Holding{Queue: held.Queue}))
	l.process(t, 12, "S", "0::/user.slice\n")
	l.inNamespace(t, 12, "1")
	for fd, target := range []string{"/dev/null", "/dev/ringcap/ids/1", "/dev/ringcap/ids/0", "/dev/ringcap/ids/0"} {
		require.NoError(t, os.Symlink(target, filepath.Join(l.proc, "12", "fd", strconv.Itoa(fd))))
	}
	assert.Equal(t, "a process that is not visible to the agent", l.Who(Holding{Queue: held.Queue}), "one look at all descriptors is enough for a while")
	l.now = l.now.Add(scanInterval)
	assert.Equal(t, "process 12 (tcp) dump), which runs in no pod", l.Who(Holding{Queue: held.Queue}))
	assert.Equal(t, "process 12 (tcp) dump), which runs in no pod, with the descriptors of process 10, which has ended", l.Who(held))
	require.NoError(t, os.RemoveAll(filepath.Join(l.proc, "12")))
	assert.Equal(t, "a process that is not visible to the agent", l.Who(Holding{Queue: held.Queue}), "it has ended since")
	l.process(t, 10, "R", ofPod)
	assert.Equal(t, "process 10 (tcp) dump) of the pod with UID "+uid, l.Who(held))
	l.pods = []NodePod{theirs}
	l.after()
	assert.Equal(t, "process 10 (tcp) dump) of pod sensors/a", l.Who(held))
}
