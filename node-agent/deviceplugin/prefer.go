// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// GetPreferredAllocation implements the kubelet's interface: the queues with the lowest numbers, so that the same pods get
// the same queues. All queues of a ring or Cluster are near the same NUMA nodes; which of them the kubelet takes is nothing
// to the packets.
func (p *plugin) GetPreferredAllocation(_ context.Context, request *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	response := &api.PreferredAllocationResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerPreferredAllocationResponse{
			DeviceIDs: prefer(container.MustIncludeDeviceIDs, container.AvailableDeviceIDs, int(container.AllocationSize)),
		})
	}
	return response, nil
}

// prefer takes what must be in, and of what else is free the lowest.
func prefer(must, free []string, count int) []string {
	chosen, rest := slices.Clone(must), slices.Clone(free)
	slices.SortFunc(rest, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	for _, device := range rest {
		if len(chosen) < count && !slices.Contains(chosen, device) {
			chosen = append(chosen, device)
		}
	}
	return chosen
}

// number is a queue's; a device that is none, which the kubelet has no reason to name, comes last.
func number(device string) uint64 {
	n, err := strconv.ParseUint(device, 10, 32)
	if err != nil {
		return 1 << 32
	}
	return n
}
