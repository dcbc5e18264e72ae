// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const config = `{"resourceList": [{"resourceName": "sriov_capture", "resourcePrefix": "intel.com",
	"selectors": {"vendors": ["8086"], "devices": ["10ca"], "drivers": ["igbvf"]}}]}`

// kubelet is its end of the registration.
type kubelet struct {
	api.UnimplementedRegistrationServer
	registered chan *api.RegisterRequest
}

func (k kubelet) Register(_ context.Context, r *api.RegisterRequest) (*api.Empty, error) {
	k.registered <- r
	return &api.Empty{}, nil
}

func startKubelet(t *testing.T, folder string) kubelet {
	listener, err := net.Listen("unix", filepath.Join(folder, "kubelet.sock"))
	require.NoError(t, err)
	k, server := kubelet{registered: make(chan *api.RegisterRequest, 1)}, grpc.NewServer()
	api.RegisterRegistrationServer(server, k)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return k
}

func write(t *testing.T, path, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func addDevice(t *testing.T, folder, address, device, driver string) {
	write(t, filepath.Join(folder, address, "vendor"), "0x8086\n")
	write(t, filepath.Join(folder, address, "device"), device+"\n")
	require.NoError(t, os.Symlink("../../drivers/"+driver, filepath.Join(folder, address, "driver")))
}

// The kubelet hears of the devices that are selected, and a container of those that it is given.
func TestAdvertises(t *testing.T) {
	folder := t.TempDir()
	devices, file := filepath.Join(folder, "devices"), filepath.Join(folder, "config.json")
	write(t, file, config)
	addDevice(t, devices, "0000:01:00.0", "0x10c9", "igb")
	addDevice(t, devices, "0000:01:10.0", "0x10ca", "igbvf")
	addDevice(t, devices, "0000:01:10.2", "0x10ca", "vfio-pci")
	k := startKubelet(t, folder)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{file, devices, folder}) }()

	registered := <-k.registered
	assert.Equal(t, "intel.com/sriov_capture", registered.ResourceName)
	conn, err := grpc.NewClient("unix:"+filepath.Join(folder, registered.Endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	plugin := api.NewDevicePluginClient(conn)
	stream, err := plugin.ListAndWatch(t.Context(), &api.Empty{})
	require.NoError(t, err)
	list, err := stream.Recv()
	require.NoError(t, err)
	require.Len(t, list.Devices, 1)
	assert.Equal(t, "0000:01:10.0", list.Devices[0].ID)
	assert.Equal(t, api.Healthy, list.Devices[0].Health)
	given, err := plugin.Allocate(t.Context(), &api.AllocateRequest{
		ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: []string{"0000:01:10.0"}}},
	})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"PCIDEVICE_INTEL_COM_SRIOV_CAPTURE": "0000:01:10.0"}, given.ContainerResponses[0].Envs)

	stop()
	assert.NoError(t, <-ended)
}

func TestRefusesWhatItCannot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	write(t, file, `{"resourceList": [{"resourceName": "a", "selectors": {"pfNames": ["eth0"]}}]}`)
	assert.ErrorContains(t, run(t.Context(), []string{file, "", ""}), `unknown field "pfNames"`)
}
