// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// fakeKubelet is the registration server of a kubelet, over real gRPC; it keeps the lists that plugins send.
type fakeKubelet struct {
	api.UnimplementedRegistrationServer
	t      *testing.T
	folder string
	server *grpc.Server

	lists chan list
	// options of the last registration; read it after a list.
	options *api.DevicePluginOptions
}

// list is what a plugin said of its devices; closed at the end of its stream.
type list struct {
	resource string
	health   []string
	nodes    []int64
	closed   bool
}

func startKubelet(t *testing.T, folder string) *fakeKubelet {
	t.Helper()
	k := &fakeKubelet{t: t, folder: folder, server: grpc.NewServer(), lists: make(chan list, 16)}
	listener, err := net.Listen("unix", filepath.Join(folder, "kubelet.sock"))
	require.NoError(t, err)
	api.RegisterRegistrationServer(k.server, k)
	go k.server.Serve(listener)
	t.Cleanup(k.server.Stop)
	return k
}

// restart does what a kubelet does: it forgets everything and removes all sockets.
func (k *fakeKubelet) restart() *fakeKubelet {
	k.t.Helper()
	k.server.Stop()
	sockets, err := filepath.Glob(filepath.Join(k.folder, "*.sock"))
	require.NoError(k.t, err)
	for _, socket := range sockets {
		require.NoError(k.t, os.Remove(socket))
	}
	return startKubelet(k.t, k.folder)
}

func (k *fakeKubelet) Register(_ context.Context, r *api.RegisterRequest) (*api.Empty, error) {
	k.options = r.Options
	go k.follow(r.ResourceName, r.Endpoint)
	return &api.Empty{}, nil
}

func (k *fakeKubelet) client(endpoint string) (api.DevicePluginClient, func()) {
	conn, err := grpc.NewClient("unix:"+filepath.Join(k.folder, endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		k.t.Error(err)
	}
	return api.NewDevicePluginClient(conn), func() { conn.Close() }
}

func (k *fakeKubelet) follow(resource, endpoint string) {
	client, closeConn := k.client(endpoint)
	defer closeConn()
	stream, err := client.ListAndWatch(context.Background(), &api.Empty{})
	if err != nil {
		return
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			k.lists <- list{resource: resource, closed: true}
			return
		}
		l := list{resource: resource}
		for _, d := range response.Devices {
			l.health = append(l.health, d.ID+" "+d.Health)
			l.nodes = nil
			for _, node := range d.Topology.GetNodes() {
				l.nodes = append(l.nodes, node.ID)
			}
		}
		k.lists <- l
	}
}

func (k *fakeKubelet) next() list {
	k.t.Helper()
	select {
	case l := <-k.lists:
		return l
	case <-time.After(time.Minute):
		require.FailNow(k.t, "the kubelet was told nothing for a minute")
		return list{}
	}
}

// fakeQueues notes what is asked of it.
type fakeQueues struct {
	mu     sync.Mutex
	taken  []capture.QueueID
	busy   int   // for so many looks
	why    error // it is
	grants atomic.Int32
	host   string // device node; empty for /dev/null
}

func (q *fakeQueues) TakeBack(_ context.Context, id capture.QueueID, holder capture.Holder) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if holder != (capture.Holder{}) {
		return 0, capture.ErrNotFound
	}
	if q.busy--; q.busy >= 0 {
		return 0, q.why
	}
	q.taken = append(q.taken, id)
	return 0, nil
}

func (q *fakeQueues) Grant(id capture.QueueID) (capture.Grant, error) {
	q.grants.Add(1)
	if id.Queue > 2 {
		return capture.Grant{}, capture.ErrNotFound
	}
	return capture.Grant{
		Devices: []capture.PathPair{{Host: cmp.Or(q.host, "/dev/null"), Container: "/dev/ringcap/ids/0"}},
		Mounts:  []capture.PathPair{{Host: "/host/folder", Container: "/run/ringcap/ids/0"}},
	}, nil
}

func startManager(t *testing.T, folder string) *Manager {
	t.Helper()
	m := NewManager(folder, filepath.Join(folder, "cdi"), onlyQueue0)
	m.retry = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		m.Run(ctx)
		close(stopped)
	}()
	t.Cleanup(func() { cancel(); <-stopped })
	return m
}

func onlyQueue0(_ context.Context, id capture.QueueID) error {
	if id.Queue != 0 {
		return errors.New("pod a/b may not have it")
	}
	return nil
}

func offer(queues Queues, healthy ...bool) map[string]Resource {
	return map[string]Resource{"ids": {Healthy: healthy, Queues: func() Queues { return queues }}}
}

func TestAResourceLivesAsItsQueuesDo(t *testing.T) {
	k := startKubelet(t, t.TempDir())
	m := startManager(t, k.folder)

	m.Set(offer(&fakeQueues{}, true, true))
	assert.Equal(t, list{resource: "ringcap.io/ids", health: []string{"0 Healthy", "1 Healthy"}}, k.next())
	m.Set(offer(&fakeQueues{}, true, false))
	assert.Equal(t, []string{"0 Healthy", "1 Unhealthy"}, k.next().health)
	m.Set(offer(&fakeQueues{}, true, true))
	assert.Equal(t, []string{"0 Healthy", "1 Healthy"}, k.next().health)
	m.Set(nil)
	assert.Equal(t, list{resource: "ringcap.io/ids"}, k.next(), "an empty list before the end")
	assert.True(t, k.next().closed)
}

func TestTheKubeletRestarts(t *testing.T) {
	k := startKubelet(t, t.TempDir())
	m := startManager(t, k.folder)
	m.Set(offer(&fakeQueues{}, true))
	k.next()

	k = k.restart()
	assert.Equal(t, []string{"0 Healthy"}, k.next().health)
	require.Eventually(t, func() bool { return m.Err() == nil }, time.Minute, 10*time.Millisecond)
}

func TestTheKubeletComesLater(t *testing.T) {
	folder := t.TempDir()
	m := startManager(t, folder)
	m.Set(offer(&fakeQueues{}, true))
	assert.Error(t, m.Err(), "at once, and not only once it failed")
	require.Eventually(t, func() bool { return m.problem() != nil }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, map[string]bool{"ids": false}, m.Registered())
	k := startKubelet(t, folder)
	assert.Equal(t, []string{"0 Healthy"}, k.next().health)
	require.Eventually(t, func() bool { return m.Err() == nil }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, map[string]bool{"ids": true}, m.Registered())
}

// An older module cannot take a queue from a consumer that is being torn down; nobody waits for what waiting does not
// change.
func TestAllocateWaitsForTheLastConsumerOfAnOlderModule(t *testing.T) {
	id := capture.QueueID{Cluster: "ids"}
	queues := &fakeQueues{busy: 2, why: errors.Join(capture.ErrInUse, capture.ErrUnsupported)}
	require.NoError(t, takeBack(t.Context(), queues, id))
	assert.Equal(t, []capture.QueueID{id}, queues.taken)

	ctx, cancel := context.WithTimeout(t.Context(), 3*detachInterval)
	defer cancel()
	queues.busy = 1000
	assert.ErrorContains(t, takeBack(ctx, queues, id), "the last consumer is still attached")
	for _, why := range []error{capture.ErrInUse, capture.ErrUnsupported, capture.ErrNoMemory} {
		queues.busy, queues.why = 1, why
		assert.ErrorIs(t, takeBack(t.Context(), queues, id), why)
	}
}

// Container runtimes read a description again when it is written, and have the numbers of device nodes from when they
// read it.
func TestANewDeviceNumberIsToldToContainerRuntimes(t *testing.T) {
	k := startKubelet(t, t.TempDir())
	m := startManager(t, k.folder)
	device := filepath.Join(t.TempDir(), "0")
	become := func(what string) {
		_ = os.Remove(device)
		require.NoError(t, os.Symlink(what, device))
	}
	become("/dev/null")
	m.Set(offer(&fakeQueues{host: device}, true))
	k.next()
	client, closeConn := k.client("ringcap-ids.sock")
	defer closeConn()
	described := func() (uint64, string) {
		var info unix.Stat_t
		require.NoError(t, unix.Stat(m.cdi.path("ids"), &info))
		text, err := os.ReadFile(m.cdi.path("ids"))
		require.NoError(t, err)
		return info.Ino, string(text)
	}
	allocate := func() (uint64, string) {
		_, err := client.Allocate(context.Background(), &api.AllocateRequest{
			ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: []string{"0"}}},
		})
		require.NoError(t, err)
		return described()
	}
	first, text := allocate()
	again, _ := allocate()
	assert.Equal(t, first, again, "the number is the same")
	become("/dev/zero")
	other, same := allocate()
	assert.NotEqual(t, first, other)
	assert.Equal(t, text, same)
	become("/dev/full")
	_, err := client.PreStartContainer(context.Background(), &api.PreStartContainerRequest{DevicesIds: []string{"0"}})
	require.NoError(t, err)
	last, _ := described()
	assert.NotEqual(t, other, last)
}

// Several pods are given queues of one resource at a time. The resource's description is one file.
func TestNewDeviceNumbersOfSeveralQueuesAtOnce(t *testing.T) {
	k := startKubelet(t, t.TempDir())
	m := startManager(t, k.folder)
	m.Set(offer(&fakeQueues{}, true))
	k.next()
	var telling sync.WaitGroup
	for range 16 {
		telling.Go(func() {
			for range 20 {
				assert.NoError(t, m.cdi.again("ids"))
			}
		})
	}
	telling.Wait()
}

func TestAllocateEmptiesTheQueueAndGrantsIt(t *testing.T) {
	k := startKubelet(t, t.TempDir())
	m := startManager(t, k.folder)
	queues := &fakeQueues{}
	wanted := offer(queues, true, true, true)
	ids := wanted["ids"]
	ids.Mounts = []capture.PathPair{{Host: "/host/lib", Container: "/lib"}}
	wanted["ids"] = ids
	m.Set(wanted)
	k.next()
	client, closeConn := k.client("ringcap-ids.sock")
	defer closeConn()
	allocate := func(ids ...string) (*api.AllocateResponse, error) {
		return client.Allocate(context.Background(), &api.AllocateRequest{
			ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: ids}},
		})
	}

	// Nobody who still has it keeps it from the container.
	response, err := allocate("1")
	require.NoError(t, err)
	require.Len(t, response.ContainerResponses, 1)
	given := response.ContainerResponses[0]
	assert.Equal(t, []capture.QueueID{{Cluster: "ids", Queue: 1}}, queues.taken)
	require.Len(t, given.Devices, 1)
	assert.Equal(t, "/dev/null", given.Devices[0].HostPath)
	assert.Equal(t, "/dev/ringcap/ids/0", given.Devices[0].ContainerPath)
	assert.Equal(t, "rw", given.Devices[0].Permissions)
	require.Len(t, given.Mounts, 2)
	assert.Equal(t, "/lib", given.Mounts[0].ContainerPath)
	assert.Equal(t, "/run/ringcap/ids/0", given.Mounts[1].ContainerPath)
	assert.True(t, given.Mounts[0].ReadOnly && given.Mounts[1].ReadOnly)

	require.Len(t, given.CdiDevices, 1)
	assert.Equal(t, "ringcap.io/queue=ids.1", given.CdiDevices[0].Name)
	assert.Equal(t, map[string]string{"RINGCAP_UNREAD": "take"}, given.Envs, "also where the runtime does not know CDI")

	_, err = allocate("3")
	assert.ErrorContains(t, err, "not found")
	_, err = allocate("../../etc")
	assert.ErrorContains(t, err, "is not a queue's number")
}

// The kubelet places pods near their queues.
func TestNUMANodes(t *testing.T) {
	k := startKubelet(t, t.TempDir())
	m := startManager(t, k.folder)
	wanted := offer(&fakeQueues{}, true)
	m.Set(wanted)
	assert.Empty(t, k.next().nodes)
	ids := wanted["ids"]
	ids.NUMANodes = []int{0, 1}
	m.Set(map[string]Resource{"ids": ids})
	assert.Equal(t, []int64{0, 1}, k.next().nodes)
}

func TestPreferredAllocation(t *testing.T) {
	k := startKubelet(t, t.TempDir())
	m := startManager(t, k.folder)
	m.Set(offer(&fakeQueues{}, true))
	k.next()
	client, closeConn := k.client("ringcap-ids.sock")
	defer closeConn()
	response, err := client.GetPreferredAllocation(t.Context(), &api.PreferredAllocationRequest{
		ContainerRequests: []*api.ContainerPreferredAllocationRequest{
			{AvailableDeviceIDs: []string{"10", "9", "2", "11"}, AllocationSize: 2},
			{AvailableDeviceIDs: []string{"10", "9", "2"}, MustIncludeDeviceIDs: []string{"9"}, AllocationSize: 2},
		},
	})
	require.NoError(t, err)
	require.Len(t, response.ContainerResponses, 2)
	assert.Equal(t, []string{"2", "9"}, response.ContainerResponses[0].DeviceIDs)
	assert.Equal(t, []string{"9", "2"}, response.ContainerResponses[1].DeviceIDs)
}

// The kubelet asks before each start of a container. The queue keeps what was not read before a restart.
func TestAContainerStarts(t *testing.T) {
	k := startKubelet(t, t.TempDir())
	m := startManager(t, k.folder)
	queues := &fakeQueues{}
	m.Set(offer(queues, true, true))
	k.next()
	assert.True(t, k.options.PreStartRequired)
	client, closeConn := k.client("ringcap-ids.sock")
	defer closeConn()
	options, err := client.GetDevicePluginOptions(t.Context(), &api.Empty{})
	require.NoError(t, err)
	assert.True(t, options.PreStartRequired && options.GetPreferredAllocationAvailable)

	_, err = client.PreStartContainer(t.Context(), &api.PreStartContainerRequest{DevicesIds: []string{"0"}})
	assert.NoError(t, err)
	_, err = client.PreStartContainer(t.Context(), &api.PreStartContainerRequest{DevicesIds: []string{"0", "1"}})
	assert.ErrorContains(t, err, "queue 1 of ids: pod a/b may not have it")
	assert.Empty(t, queues.taken)

	// Its device may be gone since the kubelet asked for it.
	before := queues.grants.Load()
	_, err = client.PreStartContainer(t.Context(), &api.PreStartContainerRequest{DevicesIds: []string{"0"}})
	assert.NoError(t, err)
	assert.Equal(t, before+1, queues.grants.Load())
}

func TestAllocateWithoutAnEngine(t *testing.T) {
	k := startKubelet(t, t.TempDir())
	m := startManager(t, k.folder)
	var gone atomic.Bool
	m.Set(map[string]Resource{"ids": {Healthy: []bool{true}, Queues: func() Queues {
		if gone.Load() {
			return nil
		}
		return &fakeQueues{}
	}}})
	k.next()
	gone.Store(true)
	client, closeConn := k.client("ringcap-ids.sock")
	defer closeConn()
	_, err := client.Allocate(context.Background(), &api.AllocateRequest{
		ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: []string{"0"}}},
	})
	assert.ErrorContains(t, err, "queues of ids: no engine serves them now")
}
