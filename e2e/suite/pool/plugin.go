// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin advertises a pool's devices to the kubelet; their names are their PCI addresses.
type plugin struct {
	api.UnimplementedDevicePluginServer
	pool    pool
	devices []string
	// done ends what is said to the kubelet.
	done <-chan struct{}
}

// start serves in the kubelet's folder for plugins until ctx ends, and registers.
func (p *plugin) start(ctx context.Context, folder string) error {
	socket := filepath.Join(folder, strings.ReplaceAll(p.pool.name(), "/", "_")+".sock")
	if err := os.RemoveAll(socket); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	context.AfterFunc(ctx, server.Stop)
	go server.Serve(listener)
	kubelet, err := grpc.NewClient("unix:"+filepath.Join(folder, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	_, err = api.NewRegistrationClient(kubelet).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: filepath.Base(socket), ResourceName: p.pool.name(),
	})
	// It may be ended after the kubelet was told and before the kubelet's answer is here.
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("register %s: %w", p.pool.name(), err)
	}
	return nil
}

// GetDevicePluginOptions asks for nothing.
func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch says once which devices there are.
func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	list := &api.ListAndWatchResponse{}
	for _, address := range p.devices {
		list.Devices = append(list.Devices, &api.Device{ID: address, Health: api.Healthy})
	}
	if err := stream.Send(list); err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-stream.Context().Done():
	}
	return nil
}

// Allocate tells the containers which devices they have.
func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerAllocateResponse{Envs: map[string]string{
			p.pool.variable(): strings.Join(container.DevicesIds, ","),
		}})
	}
	return response, nil
}
