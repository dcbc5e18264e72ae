// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Queues gives queues to containers. capture.Engine is one.
type Queues interface {
	Grant(capture.QueueID) (capture.Grant, error)
	TakeBack(ctx context.Context, queue capture.QueueID, holder capture.Holder) (from int, err error)
}

// engine returns the engine that serves the queues now.
func (r Resource) engine() (Queues, error) {
	if r.Queues != nil {
		if engine := r.Queues(); engine != nil {
			return engine, nil
		}
	}
	return nil, errors.New("no engine serves them now")
}

const (
	kubeletTimeout = 5 * time.Second
	// detachTimeout is how long an allocation waits for a queue's last consumer if the engine cannot take the queue
	// from it, because the kernel may still be ending that process. detachInterval is the time between two checks.
	detachTimeout  = 5 * time.Second
	detachInterval = 100 * time.Millisecond
)

// plugin serves one extended resource: the queues of one ring or cluster.
type plugin struct {
	api.UnimplementedDevicePluginServer

	name   string
	folder string
	// resource returns what to offer now.
	resource func() Resource
	mayStart MayStart
	// refreshCDI makes container runtimes read the description of the queues (CDI) again.
	refreshCDI func() error

	mu      sync.Mutex
	offered Resource
	// changed is closed and replaced when the offer changes.
	changed chan struct{}
	// numbers of the device nodes that container runtimes were last told, by the nodes' paths.
	numbers map[string]uint64

	server *grpc.Server
	gone   chan struct{}
}

func newPlugin(name, folder string, refreshCDI func() error, resource func() Resource, mayStart MayStart) *plugin {
	return &plugin{
		name: name, folder: folder, refreshCDI: refreshCDI, resource: resource, mayStart: mayStart,
		changed: make(chan struct{}), numbers: map[string]uint64{},
	}
}

func (p *plugin) endpoint() string { return "ringcap-" + p.name + ".sock" }

// start listens and registers with the kubelet.
func (p *plugin) start(ctx context.Context) error {
	socket := filepath.Join(p.folder, p.endpoint())
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listen for the kubelet: %w", err)
	}
	p.server, p.gone = grpc.NewServer(), make(chan struct{})
	api.RegisterDevicePluginServer(p.server, p)
	go p.server.Serve(listener)
	if err := p.register(ctx); err != nil {
		p.abandon()
		return err
	}
	return nil
}

func (p *plugin) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	conn, err := grpc.NewClient("unix:"+filepath.Join(p.folder, filepath.Base(api.KubeletSocket)),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to the kubelet: %w", err)
	}
	defer conn.Close()
	_, err = api.NewRegistrationClient(conn).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: p.endpoint(), ResourceName: v1.ResourcePrefix + p.name,
		Options: options(),
	})
	if err != nil {
		return fmt.Errorf("register %s%s with the kubelet: %w", v1.ResourcePrefix, p.name, err)
	}
	return nil
}

// abandon stops without a message to the kubelet, which is not there or has forgotten this plugin.
func (p *plugin) abandon() {
	if p.server != nil {
		p.server.Stop()
		p.server = nil
	}
}

// retire tells the kubelet that there are no more queues, and stops.
func (p *plugin) retire() {
	if p.server == nil {
		return
	}
	close(p.gone)
	stopped := make(chan struct{})
	go func() {
		p.server.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(kubeletTimeout):
		p.server.Stop()
	}
	p.server = nil
}

// set updates the offered queues, and notifies the kubelet of a change.
func (p *plugin) set(resource Resource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Equal(p.offered.Healthy, resource.Healthy) && slices.Equal(p.offered.NUMANodes, resource.NUMANodes) {
		return
	}
	p.offered = resource
	close(p.changed)
	p.changed = make(chan struct{})
}

func devices(resource Resource) []*api.Device {
	var topology *api.TopologyInfo
	if len(resource.NUMANodes) > 0 {
		topology = &api.TopologyInfo{}
		for _, number := range resource.NUMANodes {
			topology.Nodes = append(topology.Nodes, &api.NUMANode{ID: int64(number)})
		}
	}
	devices := make([]*api.Device, len(resource.Healthy))
	for i, ok := range resource.Healthy {
		devices[i] = &api.Device{ID: strconv.Itoa(i), Health: api.Unhealthy, Topology: topology}
		if ok {
			devices[i].Health = api.Healthy
		}
	}
	return devices
}

func (p *plugin) list() (*api.ListAndWatchResponse, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &api.ListAndWatchResponse{Devices: devices(p.offered)}, p.changed
}

// GetDevicePluginOptions implements the kubelet's interface.
func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return options(), nil
}

func options() *api.DevicePluginOptions {
	return &api.DevicePluginOptions{PreStartRequired: true, GetPreferredAllocationAvailable: true}
}

// ListAndWatch implements the kubelet's interface. It sends one device for each queue, and sends again whenever
// health changes.
func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	gone := p.gone
	for {
		list, changed := p.list()
		if err := stream.Send(list); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-gone:
			return stream.Send(&api.ListAndWatchResponse{})
		case <-stream.Context().Done():
			return nil
		}
	}
}

// Allocate implements the kubelet's interface. The kubelet calls it once when it admits a container, but not when the
// container restarts. The queues pass to another consumer. It must not find data of the last consumer, and the last
// one must not read its data.
func (p *plugin) Allocate(ctx context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	resource := p.resource()
	engine, err := resource.engine()
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "queues of %s: %v", p.name, err)
	}
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		given := &api.ContainerAllocateResponse{Envs: map[string]string{unreadName: unreadTaken}}
		mount(given, resource.Mounts)
		for _, id := range container.DevicesIds {
			if err := p.give(ctx, engine, id, given); err != nil {
				slog.Error("A queue could not be given to a container", "cluster", p.name, "queue", id, "error", err)
				return nil, status.Errorf(codes.FailedPrecondition, "queue %s of %s: %v", id, p.name, err)
			}
		}
		response.ContainerResponses = append(response.ContainerResponses, given)
	}
	return response, nil
}

func (p *plugin) give(ctx context.Context, engine Queues, device string, given *api.ContainerAllocateResponse) error {
	id, err := p.queue(device)
	if err != nil {
		return err
	}
	// The kubelet regards the queue as free. A process that still holds it is late to end, or its pod left it behind.
	if err := takeBack(ctx, engine, id); err != nil {
		return err
	}
	grant, err := p.grant(engine, id)
	if err != nil {
		return err
	}
	for _, d := range grant.Devices {
		given.Devices = append(given.Devices, &api.DeviceSpec{HostPath: d.Host, ContainerPath: d.Container, Permissions: "rw"})
	}
	mount(given, grant.Mounts)
	given.CdiDevices = append(given.CdiDevices, &api.CDIDevice{Name: cdiName(id)})
	return nil
}

// takeBack takes a queue from any holder. With an older kernel module without this feature, it waits for a holder
// that is ending.
func takeBack(ctx context.Context, engine Queues, id capture.QueueID) error {
	ctx, cancel := context.WithTimeout(ctx, detachTimeout)
	defer cancel()
	again := time.NewTicker(detachInterval)
	defer again.Stop()
	for {
		_, err := engine.TakeBack(ctx, id, capture.Holder{})
		if !errors.Is(err, capture.ErrInUse) || !errors.Is(err, capture.ErrUnsupported) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("the last consumer is still attached: %w", err)
		}
	}
}

// mount adds the paths that are not there yet. Two queues of a set share some.
func mount(given *api.ContainerAllocateResponse, pairs []capture.PathPair) {
	for _, m := range pairs {
		if !slices.ContainsFunc(given.Mounts, func(g *api.Mount) bool { return g.ContainerPath == m.Container }) {
			given.Mounts = append(given.Mounts, &api.Mount{HostPath: m.Host, ContainerPath: m.Container, ReadOnly: true})
		}
	}
}

func (p *plugin) queue(device string) (capture.QueueID, error) {
	number, err := strconv.Atoi(device)
	if err != nil {
		return capture.QueueID{}, fmt.Errorf("%q is not a queue's number", device)
	}
	return capture.QueueID{Cluster: p.name, Queue: number}, nil
}

// PreStartContainer implements the kubelet's interface. The kubelet calls it before each start of a container, when
// the container's pod is known. If it fails, the kubelet tries again later. It does not empty the queues: what a
// container had not read when it died is for its next start. It makes device nodes again that are gone or have
// changed, as after a reboot, because the kubelet remembers what it allocated.
func (p *plugin) PreStartContainer(ctx context.Context, request *api.PreStartContainerRequest) (*api.PreStartContainerResponse, error) {
	for _, device := range request.DevicesIds {
		if err := p.prepare(ctx, device); err != nil {
			slog.Warn("A container may not start with a queue", "cluster", p.name, "queue", device, "error", err)
			return nil, status.Errorf(codes.FailedPrecondition, "queue %s of %s: %v", device, p.name, err)
		}
	}
	return &api.PreStartContainerResponse{}, nil
}

func (p *plugin) prepare(ctx context.Context, device string) error {
	id, err := p.queue(device)
	if err != nil {
		return err
	}
	if err := p.mayStart(ctx, id); err != nil {
		return err
	}
	engine, err := p.resource().engine()
	if err != nil {
		return err
	}
	_, err = p.grant(engine, id)
	return err
}

// grant returns the engine's Grant. Container runtimes keep in memory the number that a device node had when they
// first gave it to a container. If the number is another one now, grant tells them.
func (p *plugin) grant(engine Queues, id capture.QueueID) (capture.Grant, error) {
	grant, err := engine.Grant(id)
	if err != nil {
		return grant, err
	}
	numbers := deviceNumbers(grant.Devices)
	if p.isCurrent(numbers) {
		return grant, nil
	}
	if err := p.refreshCDI(); err != nil {
		return grant, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(p.numbers, numbers)
	return grant, nil
}

func (p *plugin) isCurrent(numbers map[string]uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for path, number := range numbers {
		if p.numbers[path] != number {
			return false
		}
	}
	return true
}

// deviceNumbers returns the numbers of the existing device nodes, by the nodes' paths.
func deviceNumbers(devices []capture.PathPair) map[string]uint64 {
	numbers := map[string]uint64{}
	for _, d := range devices {
		var now unix.Stat_t
		if unix.Stat(d.Host, &now) == nil {
			numbers[d.Host] = now.Rdev
		}
	}
	return numbers
}
