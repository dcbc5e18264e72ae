// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/plan"
)

const (
	uid   = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
	under = "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0"
	other = "11111111-2222-3333-4444-555555555555"
)

func TestPodUID(t *testing.T) {
	for name, test := range map[string]struct{ cgroup, want string }{
		"v2 systemd":       {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under + ".slice/cri-containerd-abc.scope\n", uid},
		"v2 guaranteed":    {"0::/kubepods.slice/kubepods-pod" + under + ".slice/cri-containerd-abc.scope\n", uid},
		"v2 cgroupfs":      {"0::/kubepods/besteffort/pod" + uid + "/abc\n", uid},
		"v2 own namespace": {"0::/../../../besteffort/pod" + uid + "/abc\n", uid},
		"v1 cgroupfs":      {"12:pids:/kubepods/pod" + uid + "/abc\n4:memory:/kubepods/pod" + uid + "/abc\n1:name=systemd:/kubepods/pod" + uid + "/abc\n0::/\n", uid},
		"v1 systemd":       {"3:cpu,cpuacct:/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + under + ".slice/x\n", uid},
		"static pod":       {"0::/kubepods/burstable/pod0f1e2d3c4b5a69788796a5b4c3d2e1f0/abc\n", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"},
		"no pod":           {"0::/user.slice/user-1000.slice/session-1.scope\n", ""},
		"empty":            {"", ""},
		"made by the container itself": {
			"0::/kubepods/pod" + uid + "/abc/pod" + other + "\n", uid,
		},
		"hierarchies that disagree": {"4:memory:/kubepods/pod" + uid + "/abc\n5:pids:/kubepods/pod" + other + "/abc\n", ""},
		"a name like a pod's":       {"0::/system.slice/podman-0f1e2d3c.scope\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := podUID(test.cgroup)
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.want != "", ok)
		})
	}
}

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
	_, err = Kubelet(filepath.Join(t.TempDir(), "none")).Pools(context.Background())
	assert.ErrorContains(t, err, "ask the kubelet")
}

func kubelet(t *testing.T) Kubelet {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := grpc.NewServer()
	api.RegisterPodResourcesListerServer(server, fakeKubelet{})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return Kubelet(socket)
}

func TestAllocations(t *testing.T) {
	got, err := kubelet(t).Allocations(context.Background())
	require.NoError(t, err)
	assert.Equal(t, map[capture.QueueID][]Pod{
		{Cluster: "ids", Queue: 0}: {{"sensors", "a"}}, {Cluster: "ids", Queue: 1}: {{"sensors", "b"}},
	}, got)
	_, err = Kubelet(filepath.Join(t.TempDir(), "none")).Allocations(context.Background())
	assert.ErrorContains(t, err, "ask the kubelet")
}

type fakeUIDs map[Pod][]string

func (f fakeUIDs) PodUIDs(_ context.Context, pod Pod) ([]string, error) {
	if f == nil {
		return nil, errors.New("no API server")
	}
	return f[pod], nil
}

func TestAllow(t *testing.T) {
	proc := t.TempDir()
	process := func(pid, cgroup string) {
		require.NoError(t, os.MkdirAll(filepath.Join(proc, pid), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(proc, pid, "cgroup"), []byte(cgroup), 0o644))
	}
	process("10", "0::/kubepods/pod"+uid+"/abc\n")
	process("11", "0::/user.slice\n")
	pods := Pods{
		Allocations: kubelet(t), Proc: proc,
		UIDs:       fakeUIDs{{"sensors", "a"}: {uid}, {"sensors", "b"}: {other}},
		Namespaces: NewNamespaces(),
	}
	pods.Namespaces.Set(map[string][]string{"ids": nil})
	ask := func(pid, queue int) error {
		return pods.Allow(context.Background(), pid, capture.QueueID{Cluster: "ids", Queue: queue})
	}
	assert.NoError(t, ask(10, 0))
	assert.ErrorContains(t, ask(10, 1), "allocated to pod sensors/b, and this is another pod")
	assert.ErrorContains(t, ask(10, 2), "allocated to no pod")
	assert.ErrorContains(t, ask(11, 0), "runs in no pod")
	assert.ErrorContains(t, ask(12, 0), "find the pod of process 12")
	assert.ErrorContains(t, ask(0, 0), "hostPID")
	pods.Namespaces.Set(map[string][]string{"ids": {"flows", "lab"}})
	assert.ErrorContains(t, ask(10, 0), "pod sensors/a may not have queues of ids: its spec.consumers.namespaces names flows, lab, not sensors")
	pods.UIDs = fakeUIDs(nil)
	assert.ErrorContains(t, ask(10, 0), "no API server")
}

// What a container may start with does not depend on the API server being there.
func TestMayStart(t *testing.T) {
	pods := Pods{Allocations: kubelet(t), Namespaces: NewNamespaces()}
	start := func(queue int) error {
		return pods.MayStart(t.Context(), capture.QueueID{Cluster: "ids", Queue: queue})
	}
	early, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	assert.ErrorContains(t, pods.MayStart(early, capture.QueueID{Cluster: "ids"}), "has not said yet")

	go func() {
		time.Sleep(20 * time.Millisecond)
		pods.Namespaces.Set(map[string][]string{"ids": nil})
	}()
	assert.NoError(t, start(0), "it waits until that is known")
	assert.NoError(t, start(2), "where all may, it does not matter who")
	pods.Namespaces.Set(map[string][]string{"ids": {"flows", "sensors"}})
	assert.NoError(t, start(0))
	assert.ErrorContains(t, start(2), "does not say which pod gets queue 2 of ids, whose spec.consumers.namespaces names flows, sensors")
	pods.Namespaces.Set(map[string][]string{"ids": {"flows"}})
	assert.ErrorContains(t, start(1), "pod sensors/b may not have queues of ids")
	pods.Namespaces.Set(map[string][]string{})
	assert.ErrorContains(t, start(0), "nobody asks for ids any more")
	pods.Namespaces.Set(map[string][]string{"ids": {"sensors"}})
	pods.Allocations = Kubelet(filepath.Join(t.TempDir(), "none"))
	assert.ErrorContains(t, start(0), "ask the kubelet")
}
