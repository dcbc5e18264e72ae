// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/operator/api/consumers"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const (
	uid   = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
	under = "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0"
	other = "11111111-2222-3333-4444-555555555555"
	third = "22222222-2222-3333-4444-555555555555"
)

// fakeKubelet is the pod resources API over real gRPC.
type fakeKubelet struct {
	api.UnimplementedPodResourcesListerServer
}

func (fakeKubelet) List(context.Context, *api.ListPodResourcesRequest) (*api.ListPodResourcesResponse, error) {
	pod := func(name, resource string, ids ...string) *api.PodResources {
		return &api.PodResources{Namespace: "sensors", Name: name, Containers: []*api.ContainerResources{{
			Name: "c", Devices: []*api.ContainerDevices{{ResourceName: resource, DeviceIds: ids}},
		}}}
	}
	return &api.ListPodResourcesResponse{PodResources: []*api.PodResources{
		pod("a", "ringcap.io/ids", "0"), pod("b", "ringcap.io/ids", "1"), pod("gpu", "example.com/gpu", "0"),
	}}, nil
}

func (fakeKubelet) GetAllocatableResources(context.Context, *api.AllocatableResourcesRequest) (*api.AllocatableResourcesResponse, error) {
	return &api.AllocatableResourcesResponse{Devices: []*api.ContainerDevices{
		{ResourceName: "ringcap.io/ids", DeviceIds: []string{"0", "1"}},
		{ResourceName: "example.com/gpu", DeviceIds: []string{"1"}}, {ResourceName: "example.com/gpu", DeviceIds: []string{"0"}},
	}}, nil
}

// The kubelet lists each device by itself, and ours are not of interest.
func TestPools(t *testing.T) {
	got, err := kubelet(t).Pools(context.Background())
	require.NoError(t, err)
	assert.Equal(t, map[string][]plan.PoolDevice{"example.com/gpu": {{PCIAddress: "0", Pod: "sensors/gpu"}, {PCIAddress: "1"}}}, got)
	_, err = NewKubelet(filepath.Join(t.TempDir(), "none")).Pools(context.Background())
	assert.ErrorContains(t, err, "ask the kubelet")
}

func kubelet(t *testing.T) *Kubelet {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	serve(t, socket)
	return NewKubelet(socket)
}

// counter counts connections.
type counter struct {
	net.Listener
	accepted atomic.Int32
}

func (c *counter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return conn, err
}

func serve(t *testing.T, socket string) (*grpc.Server, *counter) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	counted := &counter{Listener: listener}
	server := grpc.NewServer()
	api.RegisterPodResourcesListerServer(server, fakeKubelet{})
	go server.Serve(counted)
	t.Cleanup(server.Stop)
	return server, counted
}

// The kubelet is asked over one connection until it restarts. The first request after that is answered.
func TestTheKubeletIsAskedByOneConnection(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	k := NewKubelet(socket)
	_, err := k.Allocations(t.Context())
	require.Error(t, err, "it is not there yet")
	for range 2 {
		server, counted := serve(t, socket)
		for range 20 {
			_, err := k.Allocations(t.Context())
			require.NoError(t, err)
			_, err = k.Pools(t.Context())
			require.NoError(t, err)
		}
		assert.EqualValues(t, 1, counted.accepted.Load())
		server.Stop()
	}
}

func TestAllocations(t *testing.T) {
	got, err := kubelet(t).Allocations(context.Background())
	require.NoError(t, err)
	assert.Equal(t, map[capture.QueueID][]Pod{
		{Cluster: "ids", Queue: 0}: {{"sensors", "a"}}, {Cluster: "ids", Queue: 1}: {{"sensors", "b"}},
	}, got)
	_, err = NewKubelet(filepath.Join(t.TempDir(), "none")).Allocations(context.Background())
	assert.ErrorContains(t, err, "ask the kubelet")
}

// rule is that of a ring that names namespaces.
func rule(namespaces ...string) consumers.Rule {
	return consumers.Rule{consumers.OfRing("ids", &v1.Consumers{Namespaces: namespaces})}
}

type fakeUIDs map[Pod][]string

func (f fakeUIDs) PodUIDs(_ context.Context, pod Pod) ([]string, error) {
	if f == nil {
		return nil, errors.New("no API server")
	}
	return f[pod], nil
}

func TestAllow(t *testing.T) {
	proc, cgroups := t.TempDir(), t.TempDir()
	process := func(pid int, cgroup string) {
		folder := filepath.Join(proc, strconv.Itoa(pid))
		require.NoError(t, os.MkdirAll(folder, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "cgroup"), []byte(cgroup), 0o644))
	}
	process(10, "0::/../../pod"+uid+"/abc\n")
	process(11, "0::/user.slice\n")
	process(13, "0::/v1user/pod"+uid+"/abc\n")
	process(14, "0::/v1user/pod"+third+"\n")
	put(t, cgroups, "kubepods/pod"+uid+"/abc", 10)
	access := Access{
		Allocations: kubelet(t), Proc: proc, Cgroups: Cgroups(cgroups),
		UIDs:       fakeUIDs{{"sensors", "a"}: {uid}, {"sensors", "b"}: {other}},
		Namespaces: NewNamespaces(),
	}
	access.Namespaces.Set(map[string]consumers.Rule{"ids": rule("*")})
	ask := func(pid, queue int) error {
		return access.Allow(context.Background(), pid, capture.QueueID{Cluster: "ids", Queue: queue})
	}
	assert.NoError(t, ask(10, 0))
	assert.ErrorContains(t, ask(10, 1), "allocated to pod sensors/b, and this is another pod")
	assert.ErrorContains(t, ask(10, 2), "allocated to no pod")
	assert.ErrorContains(t, ask(11, 0), "runs in no pod")
	assert.ErrorContains(t, ask(12, 0), "find the pod of process 12")
	assert.ErrorContains(t, ask(13, 0), "runs in no pod: the kubelet has not put it into the pod with UID "+uid)
	assert.ErrorContains(t, ask(14, 0), "runs in no pod: the kubelet has no cgroup of this pod (UID "+third)
	assert.ErrorContains(t, ask(0, 0), "hostPID")
	access.Namespaces.Set(map[string]consumers.Rule{"ids": rule("flows", "lab")})
	assert.ErrorContains(t, ask(10, 0), "pod sensors/a may not have queues of ids: spec.consumers of CaptureRing ids names flows, lab, not sensors")
	access.Namespaces.Set(map[string]consumers.Rule{"ids": rule()})
	assert.ErrorIs(t, ask(10, 0), consumers.ErrNobody)
	access.Namespaces.Set(map[string]consumers.Rule{"ids": {consumers.OfRing("ids", &v1.Consumers{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "ids"}},
	})}})
	labels := map[string]string{"team": "ids"}
	access.Namespaces.Labels = func(context.Context, string) (map[string]string, error) { return labels, nil }
	assert.NoError(t, ask(10, 0))
	labels["team"] = "web"
	assert.ErrorContains(t, ask(10, 0), "names namespaces with labels team=ids, not sensors")
	access.UIDs = fakeUIDs(nil)
	assert.ErrorContains(t, ask(10, 0), "no API server")
}

// What a container may start with does not depend on the API server being there.
func TestMayStart(t *testing.T) {
	access := Access{Allocations: kubelet(t), Namespaces: NewNamespaces()}
	start := func(queue int) error {
		return access.MayStart(t.Context(), capture.QueueID{Cluster: "ids", Queue: queue})
	}
	early, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	assert.ErrorContains(t, access.MayStart(early, capture.QueueID{Cluster: "ids"}), "has not said yet")

	go func() {
		time.Sleep(20 * time.Millisecond)
		access.Namespaces.Set(map[string]consumers.Rule{"ids": rule("*")})
	}()
	assert.NoError(t, start(0), "it waits until that is known")
	assert.NoError(t, start(2), "where all may, it does not matter who")
	access.Namespaces.Set(map[string]consumers.Rule{"ids": rule("flows", "sensors")})
	assert.NoError(t, start(0))
	assert.ErrorContains(t, start(2), "does not report which pod gets queue 2 of ids, and its spec.consumers does not name all")
	access.Namespaces.Set(map[string]consumers.Rule{"ids": rule("flows")})
	assert.ErrorContains(t, start(1), "pod sensors/b may not have queues of ids")
	access.Namespaces.Set(map[string]consumers.Rule{})
	assert.ErrorContains(t, start(0), "nobody asks for ids any more")
	access.Namespaces.Set(map[string]consumers.Rule{"ids": rule("sensors")})
	access.Allocations = NewKubelet(filepath.Join(t.TempDir(), "none"))
	assert.ErrorContains(t, start(0), "ask the kubelet")
}
