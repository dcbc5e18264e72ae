// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// GetPreferredAllocation implements the kubelet's interface. It prefers the queues with the lowest numbers, so that
// the same pods get the same queues. All queues of a ring or Cluster are near the same NUMA nodes, so the kubelet's
// choice does not matter to the packets.
func (p *plugin) GetPreferredAllocation(_ context.Context, request *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	response := &api.PreferredAllocationResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerPreferredAllocationResponse{
			DeviceIDs: prefer(container.MustIncludeDeviceIDs, container.AvailableDeviceIDs, int(container.AllocationSize)),
		})
	}
	return response, nil
}

// prefer takes the required devices, and the lowest of the free ones.
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

// number returns a queue's number. A device that is not a queue comes last; the kubelet has no reason to name one.
func number(device string) uint64 {
	n, err := strconv.ParseUint(device, 10, 32)
	if err != nil {
		return 1 << 32
	}
	return n
}
