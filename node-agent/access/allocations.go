// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Pod names a pod.
type Pod struct{ Namespace, Name string }

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// Allocations says which pods the kubelet gave which queues to.
type Allocations interface {
	Allocations(context.Context) (map[capture.QueueID][]Pod, error)
}

// Kubelet is Allocations by the kubelet's pod resources API on a unix socket.
type Kubelet string

const (
	kubeletTimeout = 5 * time.Second
	// maxAnswer is for nodes with many pods and devices.
	maxAnswer = 16 << 20
)

// Allocations implements Allocations.
func (socket Kubelet) Allocations(ctx context.Context) (map[capture.QueueID][]Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	client, conn, err := socket.connect()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	list, err := client.List(ctx, &api.ListPodResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask the kubelet which pod has which queue: %w", err)
	}
	return byQueue(list), nil
}

func (socket Kubelet) connect() (api.PodResourcesListerClient, *grpc.ClientConn, error) {
	conn, err := grpc.NewClient("unix:"+string(socket), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the kubelet's pod resources: %w", err)
	}
	return api.NewPodResourcesListerClient(conn), conn, nil
}

func byQueue(list *api.ListPodResourcesResponse) map[capture.QueueID][]Pod {
	found := map[capture.QueueID][]Pod{}
	for _, pod := range list.GetPodResources() {
		for _, container := range pod.GetContainers() {
			for _, devices := range container.GetDevices() {
				cluster, ours := strings.CutPrefix(devices.GetResourceName(), v1.ResourcePrefix)
				if !ours {
					continue
				}
				for _, id := range devices.GetDeviceIds() {
					if queue, err := strconv.Atoi(id); err == nil {
						key := capture.QueueID{Cluster: cluster, Queue: queue}
						found[key] = append(found[key], Pod{Namespace: pod.GetNamespace(), Name: pod.GetName()})
					}
				}
			}
		}
	}
	return found
}
