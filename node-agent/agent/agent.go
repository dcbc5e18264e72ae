// SPDX-License-Identifier: Apache-2.0

// Package agent runs the data path of one node of a cluster. It makes the data path as the node's NodeCapture asks,
// offers the queues to the kubelet, and reports the state.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/containers"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/deviceplugin"
	"github.com/ringcap/ringcap/node-agent/metrics"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/pods"
	"github.com/ringcap/ringcap/node-agent/status"
	"github.com/ringcap/ringcap/operator/api/counters"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Intervals of the agent.
const (
	resync  = 30 * time.Second
	refresh = 2 * time.Second
	// statusInterval is the pause after a failed write of the status, and between writes if the state changes very
	// often.
	statusInterval = 5 * time.Second
	// takeBackGrace is how long a consumer keeps a queue that is no longer its own.
	takeBackGrace = 10 * time.Second
)

var errUnknown = errors.New("the API server has not said yet what to capture")

// Agent is the agent of one node. Its exported fields are set before Run.
type Agent struct {
	Node           string
	Config         *rest.Config
	KubeletDir     string
	CDIDir         string
	MetricsAddress string
	// Pod of the agent, by which others ask it for its counters; empty if it runs in none.
	Pod        types.NamespacedName
	Identity   node.Identity
	Reconciler *datapath.Reconciler
	Collector  *metrics.Collector
	Module     func() status.Module
	// Access decides which pods get queues.
	Access pods.Access
	// Names of interfaces, for consumers.
	Names *containers.Names
	// Library is what containers get by injectLibpcap.
	Library containers.Library
	// Changed and Activity wake the loop.
	Changed, Activity datapath.Signal

	keeper      *pods.Keeper
	devices     *deviceplugin.Manager
	watchedPods *podWatch
	writer      status.Writer
	writing     outage
	truncation  status.Truncation
	offered     map[string]deviceplugin.Resource
	counted     atomic.Pointer[counters.Report]

	health metrics.Health
}

// PodAccess returns the rule by which consumers get queues, for engines that hand them over. sys is a sysfs in which
// the node's cgroups are mounted.
func PodAccess(config *rest.Config, kubeletDir, sys string) (pods.Access, error) {
	direct, err := newClient(config)
	if err != nil {
		return pods.Access{}, err
	}
	return pods.Access{
		Allocations: PodResources(kubeletDir), UIDs: podUIDs{direct}, Proc: "/proc", Cgroups: pods.Cgroups(filepath.Join(sys, "fs/cgroup")), Namespaces: pods.NewNamespaces(),
	}, nil
}

// PodResources returns access to the kubelet's information about devices.
func PodResources(kubeletDir string) *pods.Kubelet {
	return pods.NewKubelet(filepath.Join(kubeletDir, "pod-resources", "kubelet.sock"))
}

// Run serves until ctx ends. After that, capture continues and consumers keep their queues. While the API server
// cannot be reached, Run retries, and the data path of an earlier agent stays in use.
func (a *Agent) Run(ctx context.Context) error {
	direct, err := newClient(a.Config)
	if err != nil {
		return err
	}
	announce, err := newAnnouncer(ctx, a.Config)
	if err != nil {
		return err
	}
	a.writer = status.Writer{
		Client: direct, Node: a.Node, Agent: a.address(), Interval: statusInterval, Timeout: requestTimeout, Announce: announce, Now: time.Now,
		Count: func(report counters.Report) { a.counted.Store(&report) },
	}
	a.writer.Heartbeat = a.heartbeat(direct)
	a.writing = outage{begun: "The node's status cannot be written; it is tried again", ended: "The node's status is written again"}
	nodePods := podUIDs{direct}
	a.keeper = &pods.Keeper{
		Access: a.Access, Grace: takeBackGrace, Now: time.Now,
		Node: func(ctx context.Context, latest bool) ([]pods.NodePod, error) {
			return nodePods.NodePods(ctx, a.Node, latest)
		},
	}
	a.devices = deviceplugin.NewManager(filepath.Join(a.KubeletDir, "device-plugins"), a.CDIDir, a.Access.MayStart)
	a.Collector.Registered = a.devices.Registered
	a.health.Set(errUnknown)
	a.health.Beat()
	watch, err := newNodeWatch(a.Config, a.Node, func(err error) {
		a.health.Set(fmt.Errorf("%w: %w", errUnknown, err))
	})
	if err != nil {
		return err
	}
	a.writer.Cached = watch.cache
	if err := metrics.Serve(ctx, a.MetricsAddress, a.Collector, a.health.Healthy, a.ready, a.counted.Load); err != nil {
		return err
	}
	if a.watchedPods, err = newPodWatch(a.Config, a.Node, a.Access.Cgroups, a.Changed.Raise); err != nil {
		return err
	}
	a.Reconciler.Pods = a.watchedPods.Pods
	a.Access.Namespaces.Labels, a.Access.Namespaces.KnownLabels = a.watchedPods.labels, a.watchedPods.knownLabels
	a.watchedPods.start(ctx)
	if err := node.WatchInterfaces(ctx, a.interfacesChanged); err != nil {
		return err
	}
	if err := watch.start(ctx, a.Changed.Raise); err != nil {
		return err
	}
	return a.serve(ctx, watch)
}

// address returns where others ask the agent for its counters; nil if that is not known.
func (a *Agent) address() *v1.NodeAgent {
	_, text, _ := net.SplitHostPort(a.MetricsAddress)
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || a.Pod.Namespace == "" || a.Pod.Name == "" {
		return nil
	}
	return &v1.NodeAgent{Namespace: a.Pod.Namespace, Pod: a.Pod.Name, Port: int32(port)}
}

// heartbeat returns what renews the node's Lease in the namespace of the agent's pod. It is nil if the status does
// not name that pod, because people could not find the Lease.
func (a *Agent) heartbeat(c client.Client) *status.Heartbeat {
	if a.address() == nil {
		return nil
	}
	beating := outage{
		begun: "The node's Lease, by which it counts as reporting, cannot be renewed; its status is written once a minute instead",
		ended: "The node's Lease is renewed; its status is written when it changes, and every five minutes",
	}
	return &status.Heartbeat{
		Client: c, Namespace: a.Pod.Namespace, Timeout: requestTimeout, Pause: status.OwnPause, Note: beating.note,
	}
}

func (a *Agent) serve(ctx context.Context, watch *nodeWatch) error {
	if a.Reconciler.Trials != nil {
		go a.Reconciler.Trials.Run(ctx)
	}
	stopped := make(chan struct{})
	go func() {
		a.devices.Run(ctx)
		close(stopped)
	}()
	loop := datapath.Loop{
		Reconciler: a.Reconciler,
		Desired: func() (v1.NodeCaptureSpec, int64, bool) {
			a.health.Beat()
			spec, generation, known := watch.desired(ctx)
			if known {
				a.watchedPods.want(ctx, spec)
			}
			return spec, generation, known
		},
		Changed: a.Changed, Activity: a.Activity, Resync: resync, Refresh: refresh, Publish: a.publish,
		Reconciled: a.Collector.Reconciled,
	}
	loop.Run(ctx)
	<-stopped
	return a.Reconciler.Close()
}

func (a *Agent) interfacesChanged() {
	a.watchedPods.tracker.Refresh()
	a.Changed.Raise()
}

// publish reports to the kubelet, Prometheus and the API server.
func (a *Agent) publish(ctx context.Context, report datapath.Report) {
	a.health.Beat()
	if report.Plan.Plans == nil {
		// Nothing could be decided: the previous offer and status stay.
		a.health.Set(report.Err)
		return
	}
	module := a.Module()
	a.Access.Namespaces.Set(namespaces(report))
	libraryErr := a.provideLibrary(report)
	a.offered = a.resources(report, libraryErr == nil)
	a.devices.Set(a.offered)
	a.Collector.Set(report, module)
	allocations, err := a.allocations(ctx)
	if allocations != nil {
		a.takeBack(ctx, report, allocations)
	}
	in := status.Input{
		Report: report, Identity: a.Identity, Module: module, Consumers: podsOf(allocations), ConsumersUnknown: err != nil,
		Holders: a.holders(report, allocations), Truncating: a.truncation.Refresh(report, time.Now()), InUse: a.inUse(report),
	}
	if err := a.writer.Write(ctx, in); ctx.Err() == nil {
		a.writing.note(err)
	}
	a.health.Set(errors.Join(report.Err, report.ObserveErr, libraryErr))
}

// allocations returns the pods that each queue is allocated to; nil if no queues are offered. An error means that the
// kubelet cannot be asked.
func (a *Agent) allocations(ctx context.Context) (map[capture.QueueID][]pods.Pod, error) {
	if len(a.offered) == 0 {
		return nil, nil
	}
	allocations, err := a.Access.Allocations.Allocations(ctx)
	if err != nil {
		slog.Debug("The allocations of queues cannot be read from the kubelet", "error", err)
	}
	return allocations, err
}

// podsOf returns which pod has which queue.
func podsOf(allocations map[capture.QueueID][]pods.Pod) map[capture.QueueID]string {
	names := map[capture.QueueID]string{}
	for queue, owners := range allocations {
		names[queue] = owners[len(owners)-1].String()
	}
	return names
}

// ready returns an error while the desired state is not known, while a fault of the node keeps the data path from it,
// and while the kubelet is not offered a queue.
func (a *Agent) ready() error {
	if err := a.health.Ready(); err != nil {
		return err
	}
	return a.devices.Err()
}
