// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strconv"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Setting is a setting of an interface that a ring can change. Its text is the field's name below spec.nic.
type Setting string

// The settings and their possible desired values.
const (
	// SettingPromiscuous is "on".
	SettingPromiscuous Setting = "promiscuous"
	// SettingOffloads is "off"; it concerns receive offloads that merge packets.
	SettingOffloads Setting = "offloads"
	// SettingVLANOffload is "off"; it concerns the removal of VLAN tags by the NIC.
	SettingVLANOffload Setting = "vlanOffload"
	// SettingRxQueues is a number.
	SettingRxQueues Setting = "rxQueues"
	// SettingRxRingSize is the number of descriptors for each RX queue.
	SettingRxRingSize Setting = "rxRingSize"
	// SettingRSSHash is v1.RSSHashSymmetric.
	SettingRSSHash Setting = "rss.hash"
	// SettingRSSFields is v1.RSSFieldsAddresses or v1.RSSFieldsAddressesAndPorts.
	SettingRSSFields Setting = "rss.fields"
	// SettingRSSQueues is the number of RX queues, from the first on, that packets are spread over.
	SettingRSSQueues Setting = "rss.queues"
	// SettingThreadedPolling is "on".
	SettingThreadedPolling Setting = "threadedPolling"
	// SettingPollingCPUs is a list of CPUs as in cpuset(7). Each polling thread gets one of them, in turn.
	SettingPollingCPUs Setting = "threadedPolling.cpus"
)

// Desired is the value that a ring asks for.
type Desired struct {
	Value string
	// Ring that asks for it.
	Ring string
}

// NICSettings holds the desired settings of an interface while it is captured, besides being up. Other settings stay,
// or are restored, as they were.
type NICSettings map[Setting]Desired

// nicSettings returns the settings of one ring.
func nicSettings(ring string, nic v1.NIC, promiscuous bool) NICSettings {
	settings := NICSettings{}
	set := func(when bool, setting Setting, value string) {
		if when {
			settings[setting] = Desired{Value: value, Ring: ring}
		}
	}
	number := func(setting Setting, value *int32) {
		if value != nil {
			set(true, setting, strconv.Itoa(int(*value)))
		}
	}
	set(promiscuous, SettingPromiscuous, "on")
	set(nic.Offloads == v1.OffloadsDisable, SettingOffloads, "off")
	set(nic.VLANOffload == v1.VLANOffloadDisable, SettingVLANOffload, "off")
	number(SettingRxQueues, nic.RxQueues)
	number(SettingRxRingSize, nic.RxRingSize)
	set(nic.RSS.Hash == v1.RSSHashSymmetric, SettingRSSHash, string(nic.RSS.Hash))
	set(nic.RSS.Fields != "" && nic.RSS.Fields != v1.RSSFieldsKeep, SettingRSSFields, string(nic.RSS.Fields))
	number(SettingRSSQueues, nic.RSS.Queues)
	threaded := nic.ThreadedPolling.Mode == v1.ThreadedPollingEnable
	set(threaded, SettingThreadedPolling, "on")
	set(threaded && nic.ThreadedPolling.CPUs != "", SettingPollingCPUs, nic.ThreadedPolling.CPUs)
	return settings
}

// setNIC adds a planned ring's desired settings of an interface. Rings come in the order of their names. So the
// result does not depend on which ring was there first, which nobody knows after a restart.
func (b *builder) setNIC(ring, iface string, desired NICSettings) {
	if b.result.NICs[iface] == nil {
		b.result.NICs[iface] = NICSettings{}
	}
	conflict := b.result.NICs[iface].merge(desired, iface)
	if verdict := b.result.Rings[ring]; conflict != "" && verdict.Ready() {
		verdict.Reason, verdict.Message = v1.ReasonNICSettingConflict, conflict
		b.result.Rings[ring] = verdict
	}
}

// merge adds a ring's desired settings to those of earlier rings. If two differ, the first wins, and merge returns a
// message. The message is empty without a conflict.
func (s NICSettings) merge(desired NICSettings, iface string) string {
	var conflict string
	for _, setting := range sortedSettings(desired) {
		want := desired[setting]
		first, taken := s[setting]
		if !taken {
			s[setting] = want
			continue
		}
		if first.Value != want.Value && conflict == "" {
			conflict = fmt.Sprintf("spec.nic.%s is %s, and %s has been set to %s for ring %s, which comes first by name: make the two equal, or leave one out",
				setting, want.Value, iface, first.Value, first.Ring)
		}
	}
	return conflict
}

func sortedSettings(s NICSettings) []Setting {
	settings := make([]Setting, 0, len(s))
	for setting := range s {
		settings = append(settings, setting)
	}
	slices.Sort(settings)
	return settings
}
