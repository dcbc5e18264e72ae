// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/nic"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// interfaceStatuses returns the statuses of the interfaces that rings ask for, by name.
func interfaceStatuses(r datapath.Report) []v1.InterfaceStatus {
	rings, pods := map[string][]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.Rings)) {
		ring := r.Rings[name].Decision
		for _, i := range ring.Interfaces {
			rings[i] = append(rings[i], name)
			if pod := ring.Pods[i]; pod != "" {
				pods[i] = pod
			}
		}
	}
	var statuses []v1.InterfaceStatus
	for _, name := range slices.Sorted(maps.Keys(rings)) {
		fact := r.Drivers[name]
		status := v1.InterfaceStatus{
			Name: name, Pod: pods[name], Driver: fact.Name, Aware: fact.Aware, StockDriver: fact.Stock, RxQueues: int32(r.RxQueues[name]),
			Rings: rings[name], Settings: settingStatuses(r.Outcome.NICs[name]),
		}
		if why := fact.Failure(); why != "" {
			status.Reason, status.Message = v1.ReasonDriverReplaceFailed, why
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// settingStatuses returns the settings in the order of their names, which are the names of the fields of spec.nic.
func settingStatuses(outcome nic.Outcome) []v1.InterfaceSetting {
	var settings []v1.InterfaceSetting
	for _, s := range outcome.Settings {
		settings = append(settings, v1.InterfaceSetting{
			Name: string(s.Setting), Wanted: s.Value, Actual: s.Actual, Ring: s.Ring, Reason: string(s.Problem), Message: s.Message,
		})
	}
	slices.SortFunc(settings, func(x, y v1.InterfaceSetting) int { return strings.Compare(x.Name, y.Name) })
	return settings
}
