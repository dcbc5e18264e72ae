// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/containers"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/engine/ebpf"
	"github.com/ringcap/ringcap/node-agent/engine/kmod"
	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const (
	// batch is how many pods there are at a time beside the steady one, each of which sends each packets.
	batch, each = 20, 5
	// heapGrowth is how much more memory may be in use after the churn than when it has begun.
	heapGrowth = 4 << 20
)

// count of pods that come and go, RINGCAP_CHURN if set: an hour's on a busy node are 1,000.
func count(t *testing.T) int {
	if text := os.Getenv("RINGCAP_CHURN"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	return 100
}

// churn is a lab with an agent's data path, over one engine.
type churn struct {
	*lab
	kind    v1.Engine
	base    string
	pods    []*sandbox
	tracker *Tracker
	agent   *datapath.Reconciler
	// unknown is why the agent does not know its pods.
	unknown string
}

type noNICs struct{}

func (noNICs) Apply(map[string]plan.NICSettings) (map[string]nic.Outcome, error) { return nil, nil }

func newChurn(t *testing.T, kind v1.Engine) *churn {
	t.Helper()
	must := strings.Contains(os.Getenv("RINGCAP_ENGINES"), string(kind))
	c := &churn{lab: newLab(t), kind: kind}
	probe := ebpf.Probe
	if kind == v1.EngineKernelModule {
		probe = func() error { _, err := kmod.Probe(); return err }
	}
	if err := probe(); err != nil {
		require.False(t, must, "the engine cannot run here: %v", err)
		t.Skipf("this engine cannot run here: %v", err)
	}
	var err error
	c.base, err = os.MkdirTemp("", "rcp")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(c.base) })
	require.NoError(t, os.Mkdir(c.path("bpf"), 0o700))
	require.NoError(t, unix.Mount("bpf", c.path("bpf"), "bpf", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(c.path("bpf"), unix.MNT_DETACH)) })
	c.tracker = NewTracker(Cgroups(c.cgroups), func() (objects []Object, of uint64) {
		for _, s := range c.pods {
			objects = append(objects, s.object)
		}
		return objects, 1
	}, func() {})
	c.start()
	return c
}

func (c *churn) path(name string) string { return filepath.Join(c.base, name) }

// start is what an agent that starts makes.
func (c *churn) start() {
	c.agent = &datapath.Reconciler{
		NICs: noNICs{}, Interfaces: node.Interfaces, Names: containers.NewNames(c.path("run")),
		Pods: func() ([]plan.Pod, string) {
			pods, _ := c.tracker.Pods()
			return pods, c.unknown
		},
		Providers: []*datapath.Provider{{
			Kind: c.kind,
			Probe: func(context.Context) plan.EngineFact {
				return plan.EngineFact{Available: true, Lanes: 1, SlotOverhead: 64}
			},
			Open: func(context.Context) (capture.Engine, error) {
				if c.kind == v1.EngineKernelModule {
					return kmod.New(c.path("run"), 1), nil
				}
				return ebpf.New(ebpf.Options{PinDir: filepath.Join(c.path("bpf"), "ringcap"), RunDir: c.path("run")})
			},
		}},
	}
	c.t.Cleanup(func() { c.agent.Close() })
}

func spec() v1.NodeCaptureSpec {
	ring := v1.NodeRing{Name: "pods", Spec: v1.CaptureRingSpec{
		Interfaces: []v1.InterfaceSelector{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}},
		Direction:  v1.DirectionBoth, Queues: v1.Queues(1),
	}}
	ring.Spec.Slots = 16384
	ring.Spec.Default()
	return v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring}}
}

// settle does what the agent does until the ring is ready and taps all pods. If an interface goes while the taps are
// set, settle does it again, as the agent does when it is notified.
func (c *churn) settle() {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		waiting := c.tracker.update(time.Now()) != seldom
		report := c.agent.Reconcile(context.Background(), spec(), 1)
		ring := report.Rings["pods"]
		if !waiting && ring.Ready() && len(report.Observations[c.kind].Rings["pods"].Taps) == len(c.pods) && len(ring.Decision.Pods) == len(c.pods) {
			return
		}
		require.True(c.t, time.Now().Before(deadline), "%+v, pods %v, %v", ring, c.pods, report.Err)
		time.Sleep(time.Millisecond)
	}
}

// socket is a packet socket on a pod's interface.
func (c *churn) socket(s *sandbox) int {
	back, err := netns.Get()
	require.NoError(c.t, err)
	defer back.Close()
	require.NoError(c.t, netns.Set(s.namespace))
	defer func() { require.NoError(c.t, netns.Set(back)) }()
	inside, err := netlink.LinkByName("eth0")
	require.NoError(c.t, err)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	require.NoError(c.t, err)
	require.NoError(c.t, unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: inside.Attrs().Index}))
	return fd
}

var frame = append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5}, make([]byte, 50)...)

// round has a batch of pods come, send, and go.
func (c *churn) round() (came []string) {
	steady := c.pods
	for range batch {
		c.pods = append(c.pods, c.pod(map[string]string{"app": "web"}))
	}
	c.settle()
	for _, s := range c.pods[len(steady):] {
		came = append(came, s.object.String())
		fd := c.socket(s)
		for range each {
			_, err := unix.Write(fd, frame)
			require.NoError(c.t, err)
		}
		require.NoError(c.t, unix.Close(fd))
	}
	gone := c.pods[len(steady):]
	c.pods = steady
	for i, s := range gone {
		if i%2 == 0 {
			// What a runtime that is in a hurry does: all goes with the namespace, some time later.
			c.kill(s)
			require.NoError(c.t, unix.Close(int(s.namespace)))
			continue
		}
		c.remove(s)
	}
	c.settle()
	return came
}

// stream runs rcstream on the ring's queue. It returns a function that ends it and returns the packets by interface
// name.
func (c *churn) stream() (end func() map[string]int) {
	program := os.Getenv("RINGCAP_RCSTREAM")
	if program == "" {
		program = "../../out/bin/rcstream"
	}
	file, err := os.Create(c.path("stream.pcapng"))
	require.NoError(c.t, err)
	command := exec.Command(program, "pods")
	command.Env = append(os.Environ(), "RINGCAP_RUN_DIR="+c.path("run"))
	command.Stdout, command.Stderr = file, os.Stderr
	in, err := command.StdinPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, command.Start())
	c.t.Cleanup(func() { _ = command.Process.Kill() })
	// In this goroutine: its thread is in the node's namespace.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		o, err := c.agent.Engine(c.kind).Observe(context.Background())
		require.NoError(c.t, err)
		if o.Clusters["pods"].Queues[0].Attached {
			break
		}
		require.True(c.t, time.Now().Before(deadline), "rcstream does not attach")
	}
	return func() map[string]int {
		_, err := in.Write([]byte("\n"))
		require.NoError(c.t, err)
		require.NoError(c.t, in.Close())
		require.NoError(c.t, command.Wait())
		return c.read(file.Name())
	}
}

// read counts packets by the name of their interface.
func (c *churn) read(path string) map[string]int {
	file, err := os.Open(path)
	require.NoError(c.t, err)
	defer file.Close()
	r, err := pcapgo.NewNgReader(file, pcapgo.DefaultNgReaderOptions)
	require.NoError(c.t, err)
	counts := map[string]int{}
	for {
		_, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return counts
		}
		require.NoError(c.t, err)
		i, err := r.Interface(info.InterfaceIndex)
		require.NoError(c.t, err)
		counts[i.Name]++
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Pods come and go, and the agent is restarted in between. A pod that stays loses nothing, and each packet is
// assigned to its pod. Nothing is left of the pods that went, and the agent's memory does not grow with them.
func testChurn(t *testing.T, kind v1.Engine) {
	c := newChurn(t, kind)
	stays := c.pod(map[string]string{"app": "web"})
	c.pods = []*sandbox{stays}
	c.settle()
	end := c.stream()
	fd := c.socket(stays)
	var sent atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				if _, err := unix.Write(fd, frame); assert.NoError(t, err) {
					sent.Add(1)
				}
			}
		}
	}()

	rounds, want := count(t)/batch, map[string]int{}
	var before uint64
	for i := range rounds {
		for _, name := range c.round() {
			want[name] = each
		}
		switch i {
		case min(2, rounds-1):
			before = heap()
		case rounds / 2:
			c.restart()
		}
	}
	close(stop)
	<-stopped
	require.NoError(t, unix.Close(fd))
	after := heap()
	assert.Less(t, after, before+heapGrowth)
	want[stays.object.String()] = int(sent.Load())
	c.account(want)
	assert.Equal(t, want, end())
	t.Logf("%d pods came and went; %d packets of the one that stayed; memory in use: %d KiB before, %d KiB after", len(want)-1, sent.Load(), before>>10, after>>10)
}

// restart is another agent's start, which does not know at first which pods there are.
func (c *churn) restart() {
	require.NoError(c.t, c.agent.Close())
	c.start()
	c.unknown = "not yet"
	report := c.agent.Reconcile(context.Background(), spec(), 1)
	assert.Equal(c.t, v1.ReasonPodNotTapped, report.Rings["pods"].Reason)
	assert.Len(c.t, report.Observations[c.kind].Rings["pods"].Taps, 1)
	c.unknown = ""
	c.settle()
}

// account compares what the data path counted with what was sent, and looks for leftovers.
func (c *churn) account(want map[string]int) {
	all := 0
	for _, n := range want {
		all += n
	}
	o, err := c.agent.Engine(c.kind).Observe(context.Background())
	require.NoError(c.t, err)
	ring, queue := o.Rings["pods"], o.Clusters["pods"].Queues[0]
	assert.EqualValues(c.t, all, ring.Stats.Seen)
	assert.EqualValues(c.t, all, ring.Stats.Passed)
	assert.EqualValues(c.t, all, queue.Delivered)
	assert.Len(c.t, ring.Taps, 1)
	if c.kind == v1.EngineEBPF {
		pins := 0
		require.NoError(c.t, filepath.WalkDir(c.path("bpf"), func(path string, _ os.DirEntry, err error) error {
			if strings.HasPrefix(filepath.Base(path), "tap_") {
				pins++
			}
			return err
		}))
		assert.LessOrEqual(c.t, pins, 2, "pinned links: one for each direction")
	}
}

func TestChurnEBPF(t *testing.T)         { testChurn(t, v1.EngineEBPF) }
func TestChurnKernelModule(t *testing.T) { testChurn(t, v1.EngineKernelModule) }
