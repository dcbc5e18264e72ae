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

// interfaceStatuses are those of the interfaces that rings tap, by name.
func interfaceStatuses(r datapath.Report) []v1.InterfaceStatus {
	rings := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.Plan.Rings)) {
		if verdict := r.Plan.Rings[name]; verdict.Planned {
			for _, i := range verdict.Interfaces {
				rings[i] = append(rings[i], name)
			}
		}
	}
	var statuses []v1.InterfaceStatus
	for _, name := range slices.Sorted(maps.Keys(rings)) {
		statuses = append(statuses, v1.InterfaceStatus{Name: name, Rings: rings[name], Settings: settingStatuses(r.NICs[name])})
	}
	return statuses
}

// settingStatuses are in the order of their names, which are the fields' of spec.nic.
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
