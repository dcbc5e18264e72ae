// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Pod names a pod.
type Pod struct{ Namespace, Name string }

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// Allocations returns the pods to which the kubelet gave queues.
type Allocations interface {
	Allocations(context.Context) (map[capture.QueueID][]Pod, error)
}

// Kubelet implements Allocations by the kubelet's pod resources API on a unix socket. It keeps its connection,
// because it is called all the time. Several goroutines may call its methods.
type Kubelet struct {
	socket string

	mu   sync.Mutex
	conn *grpc.ClientConn
}

const (
	kubeletTimeout = 5 * time.Second
	// maxAnswer has room for nodes with many pods and devices.
	maxAnswer = 16 << 20
)

// NewKubelet makes a Kubelet. It does not connect yet.
func NewKubelet(socket string) *Kubelet { return &Kubelet{socket: socket} }

// Allocations implements Allocations.
func (k *Kubelet) Allocations(ctx context.Context) (map[capture.QueueID][]Pod, error) {
	var found map[capture.QueueID][]Pod
	err := k.ask(ctx, func(ctx context.Context, client api.PodResourcesListerClient) error {
		list, err := client.List(ctx, &api.ListPodResourcesRequest{})
		found = byQueue(list)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask the kubelet which pod has which queue: %w", err)
	}
	return found, nil
}

// ask uses the existing connection. If that is broken, it uses a new one, because the kubelet may have restarted.
func (k *Kubelet) ask(ctx context.Context, question func(context.Context, api.PodResourcesListerClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	var broken *grpc.ClientConn
	for {
		conn, err := k.connection(broken)
		if err != nil {
			return fmt.Errorf("connect to the kubelet's pod resources: %w", err)
		}
		err = question(ctx, api.NewPodResourcesListerClient(conn))
		// A request gets Canceled if another request has found the connection broken.
		if code := status.Code(err); broken != nil || ctx.Err() != nil || code != codes.Unavailable && code != codes.Canceled {
			return err
		}
		broken = conn
	}
}

// connection returns the existing connection unless it is the broken one.
func (k *Kubelet) connection(broken *grpc.ClientConn) (*grpc.ClientConn, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conn != nil && k.conn == broken {
		k.conn.Close()
		k.conn = nil
	}
	if k.conn != nil {
		return k.conn, nil
	}
	var err error
	k.conn, err = grpc.NewClient("unix:"+k.socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	return k.conn, err
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
