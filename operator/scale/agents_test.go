// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/counters"
	"github.com/ringcap/ringcap/operator/api/heartbeat"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/snapshot"
)

// One other process plays the agents of the whole fleet, so that their cost is separate from the operator's. They write what real
// agents write, at the same times: their Lease; the status, as a patch of the object that they know, at once when they have got
// something new, and for the counters each at its own moment. Unlike real agents they share one watch.

// agentsOf is the variable by which this program plays the agents of an API server's nodes, with its kubeconfig.
const agentsOf = "RINGCAP_SCALE_AGENTS_OF"

// heartbeats is how often an agent renews its Lease, less up to a third of it.
const heartbeats = time.Minute

// inFlight is how many agents the API server serves at a time. Real ones it has wait in line, by its priority and fairness, from which
// the administrator who plays them here is exempt.
const inFlight = 32

// again is when an agent tries again what has failed.
const again = 5 * time.Second

// apiServer is the API server's account of itself.
type apiServer struct{ kubernetes.Interface }

// startAgents starts the other process.
func (f fleet) startAgents(t *testing.T, admin client.Client, config *rest.Config) apiServer {
	t.Helper()
	agents := exec.Command(os.Args[0])
	agents.Env = append(os.Environ(), agentsOf+"="+env.Kubeconfig(t))
	agents.Stderr = os.Stderr
	require.NoError(t, agents.Start())
	t.Cleanup(func() {
		_ = agents.Process.Signal(syscall.SIGTERM)
		require.NoError(t, agents.Wait())
	})
	clients, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return apiServer{clients}
}

// playAgents plays them until the process is told to end.
func playAgents(kubeconfig string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return err
	}
	options := snapshot.CacheOptions(metav1.NamespaceDefault)
	options.Scheme = scheme.Scheme
	known, err := cache.New(config, options)
	if err != nil {
		return err
	}
	informer, err := known.GetInformer(ctx, &v1alpha1.NodeCapture{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	p := &players{ctx: ctx, client: c, agents: map[string]*agent{}, turns: make(chan struct{}, inFlight)}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { p.see(object.(*v1alpha1.NodeCapture)) },
		UpdateFunc: func(_, object any) { p.see(object.(*v1alpha1.NodeCapture)) },
	})
	return errors.Join(err, known.Start(ctx))
}

// players are all agents.
type players struct {
	ctx    context.Context
	client client.Client
	agents map[string]*agent
	turns  chan struct{}
}

// agent of one node.
type agent struct {
	mu sync.Mutex
	// latest is what the watch brought, or the last write.
	latest *v1alpha1.NodeCapture
	wake   chan struct{}
}

// see is called for each event, one after the other.
func (p *players) see(capture *v1alpha1.NodeCapture) {
	a := p.agents[capture.Name]
	if a == nil {
		a = &agent{wake: make(chan struct{}, 1)}
		p.agents[capture.Name] = a
		go p.play(a)
	}
	a.learn(capture)
	if capture.Status.AppliedGeneration != capture.Generation {
		a.poke()
	}
}

// learn takes the newer of two states.
func (a *agent) learn(capture *v1alpha1.NodeCapture) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.latest == nil || a.latest.UID != capture.UID || version(capture) > version(a.latest) {
		a.latest = capture
	}
}

func version(capture *v1alpha1.NodeCapture) int {
	n, _ := strconv.Atoi(capture.ResourceVersion)
	return n
}

func (a *agent) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// play is one agent's life.
func (p *players) play(a *agent) {
	packets, came := int64(0), false
	counted, beat := time.After(rand.N(counters.EveryWithLease)), (<-chan time.Time)(nil)
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-beat:
			beat = p.renew(a)
			continue
		case <-a.wake:
		case <-counted:
			counted = time.After(counters.EveryWithLease)
		}
		packets += 30000
		p.turns <- struct{}{}
		err := p.write(a, packets)
		<-p.turns
		switch {
		case err == nil && !came:
			came, beat = true, p.renew(a)
		case err == nil || apierrors.IsNotFound(err):
		case apierrors.IsConflict(err):
			time.AfterFunc(time.Second, a.poke) // if the watch does not bring what is newer before
		default:
			time.AfterFunc(again, a.poke)
		}
	}
}

func (p *players) write(a *agent, packets int64) error {
	a.mu.Lock()
	latest := a.latest
	a.mu.Unlock()
	before := &v1alpha1.NodeCapture{ObjectMeta: latest.ObjectMeta, Status: latest.Status}
	sent := before.DeepCopy()
	sent.Status = statusOf(latest, packets)
	if err := p.client.Status().Patch(p.ctx, sent, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	a.learn(sent)
	return nil
}

// renew renews the agent's Lease, and returns when to do so again.
func (p *players) renew(a *agent) <-chan time.Time {
	a.mu.Lock()
	name, uid := a.latest.Name, a.latest.UID
	a.mu.Unlock()
	now, seconds := metav1.NowMicro(), int32(v1alpha1.StaleAfter/time.Second)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: heartbeat.Name(name), Labels: heartbeat.Labels(),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeCapture", Name: name, UID: uid}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	p.turns <- struct{}{}
	defer func() { <-p.turns }()
	err := p.client.Patch(p.ctx, lease.DeepCopy(), client.MergeFrom(&coordinationv1.Lease{}))
	if apierrors.IsNotFound(err) {
		err = p.client.Create(p.ctx, lease)
	}
	if err != nil && p.ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "agents:", err)
	}
	return time.After(heartbeats - rand.N(heartbeats/3))
}

// statusOf reports that the node has applied its whole spec.
func statusOf(nc *v1alpha1.NodeCapture, packets int64) v1alpha1.NodeCaptureStatus {
	condition := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: nc.Generation, LastTransitionTime: nc.CreationTimestamp,
		}
	}
	s := v1alpha1.NodeCaptureStatus{
		AppliedGeneration: nc.Generation, ObservedTime: &metav1.Time{Time: time.Now()}, Engine: v1alpha1.EngineEBPF,
		EngineReason: "there is no kernel module for this kernel", KernelRelease: "6.12.0-1-amd64", BootID: "00000000-0000-4000-8000-000000000000",
		Conditions: []metav1.Condition{
			condition(v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted, "all rings and clusters are accepted"),
			condition(v1alpha1.ConditionProgrammed, v1alpha1.ReasonProgrammed, "all rings and clusters are in the data path"),
			condition(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "all queues can be requested"),
		},
	}
	for i := range nc.Spec.Rings {
		r := &nc.Spec.Rings[i]
		s.Rings = append(s.Rings, v1alpha1.NodeRingStatus{
			Name: r.Name, ObservedRevision: r.Revision, Engine: v1alpha1.EngineEBPF, EngineReason: s.EngineReason, Ready: true,
			Interfaces: []string{r.Spec.Interfaces[0].Name}, Seen: packets, SeenBytes: packets * 500, Passed: packets,
		})
		if r.Spec.Queues != nil {
			s.Clusters = append(s.Clusters, queues(r.Name, v1alpha1.QueueCount(r.Spec.Queues), packets))
		}
	}
	return s
}

func queues(name string, count int32, packets int64) v1alpha1.NodeClusterStatus {
	s := v1alpha1.NodeClusterStatus{Name: name, Ready: true, MemoryBytes: int64(count) << 23}
	for q := range count {
		s.Queues = append(s.Queues, v1alpha1.QueueStatus{
			Queue: q, Attached: true, Consumer: fmt.Sprintf("sensors/suricata-%d", q), Delivered: packets / 4, DeliveredBytes: packets * 125,
		})
	}
	return s
}

// awaitReports waits until each node reports that it has applied its whole spec, and has its Lease.
func (f fleet) awaitReports(t *testing.T, c client.Client, timeout time.Duration) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(500 * time.Millisecond) {
		var captures v1alpha1.NodeCaptureList
		require.NoError(t, c.List(t.Context(), &captures, client.UnsafeDisableDeepCopy))
		done := 0
		for i := range captures.Items {
			if captures.Items[i].Status.AppliedGeneration == captures.Items[i].Generation {
				done++
			}
		}
		var leases coordinationv1.LeaseList
		require.NoError(t, c.List(t.Context(), &leases, client.UnsafeDisableDeepCopy))
		if done == f.nodes && len(leases.Items) == f.nodes {
			return
		}
		require.Less(t, time.Since(begun), timeout, "%d of %d nodes have reported, and %d have a Lease", done, f.nodes, len(leases.Items))
	}
}

// requestsAtRest are those a second that the API server gets while nothing changes but counters.
func (f fleet) requestsAtRest(t *testing.T, s apiServer) float64 {
	t.Helper()
	const requests = "apiserver_request_total"
	f.pause(time.Minute)
	before, begun := s.sum(t, requests), take(t)
	f.pause(2 * time.Minute) // two rounds of all agents' Leases, and two fifths of their counters
	after := s.sum(t, requests)
	return (after - before) / begun.log(t, "at rest, with what agents report").at.Sub(begun.at).Seconds()
}

// sum adds up a metric's series.
func (s apiServer) sum(t *testing.T, name string) float64 {
	t.Helper()
	text, err := s.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
	var sum float64
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), "} ")
		if !strings.HasPrefix(series, name+"{") {
			continue
		}
		var v float64
		_, err := fmt.Sscan(value, &v)
		require.NoError(t, err, lines.Text())
		sum += v
	}
	require.NoError(t, lines.Err())
	return sum
}
