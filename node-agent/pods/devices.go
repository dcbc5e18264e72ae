// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"

	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Pools returns the devices that other device plugins advertise on this node, by resource name and in order of their
// ids. If a plugin for virtual functions made them, the ids are PCI addresses.
func (k *Kubelet) Pools(ctx context.Context) (map[string][]plan.PoolDevice, error) {
	var found map[string][]plan.PoolDevice
	err := k.ask(ctx, func(ctx context.Context, client api.PodResourcesListerClient) error {
		all, err := client.GetAllocatableResources(ctx, &api.AllocatableResourcesRequest{})
		if err != nil {
			return err
		}
		list, err := client.List(ctx, &api.ListPodResourcesRequest{})
		found = pools(all, list)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask the kubelet which devices there are, and which pod has which: %w", err)
	}
	return found, nil
}

func pools(all *api.AllocatableResourcesResponse, list *api.ListPodResourcesResponse) map[string][]plan.PoolDevice {
	owners := map[string]string{}
	for _, pod := range list.GetPodResources() {
		for _, container := range pod.GetContainers() {
			for _, devices := range container.GetDevices() {
				for _, id := range devices.GetDeviceIds() {
					owners[devices.GetResourceName()+" "+id] = Pod{Namespace: pod.GetNamespace(), Name: pod.GetName()}.String()
				}
			}
		}
	}
	found := map[string][]plan.PoolDevice{}
	for _, devices := range all.GetDevices() {
		name := devices.GetResourceName()
		if strings.HasPrefix(name, v1.ResourcePrefix) {
			continue
		}
		for _, id := range devices.GetDeviceIds() {
			found[name] = append(found[name], plan.PoolDevice{PCIAddress: id, Pod: owners[name+" "+id]})
		}
	}
	for _, devices := range found {
		slices.SortFunc(devices, func(a, b plan.PoolDevice) int { return strings.Compare(a.PCIAddress, b.PCIAddress) })
	}
	return found
}
