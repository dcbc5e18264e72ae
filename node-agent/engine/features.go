// SPDX-License-Identifier: Apache-2.0

// Package engine says which of the API's fields each engine serves. What an engine does not serve is refused by name in
// the plan, never ignored; the tables below grow as engines learn.
package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Feature is a field of the API, or a value of one, that not every engine serves, as people write it.
type Feature string

// The features of rings.
const (
	TransparentMode1   Feature = "spec.transparentMode 1"
	TransparentMode2   Feature = "spec.transparentMode 2"
	QuickMode          Feature = "spec.quickMode"
	ResourceName       Feature = "spec.interfaces[].resourceName"
	PodSelector        Feature = "spec.interfaces[].podSelector"
	RxQueues           Feature = "spec.interfaces[].rxQueues"
	VLANs              Feature = "spec.filter.vlans"
	Rules              Feature = "spec.filter.rules"
	RuleLearn          Feature = "spec.filter.rules[].action Learn"
	RuleQueue          Feature = "spec.filter.rules[].action Queue"
	RuleReflect        Feature = "spec.filter.rules[].action Reflect"
	RuleIdleTimeout    Feature = "spec.filter.rules[].idleTimeout"
	Payload            Feature = "spec.filter.payload"
	Plugins            Feature = "spec.filter.plugins"
	Sampling           Feature = "spec.sampling"
	SamplingByFlow     Feature = "spec.sampling.by Flow"
	Defragment         Feature = "spec.defragment"
	HardwareTimestamps Feature = "spec.timestamps Hardware"
	QueuesPerRxQueue   Feature = "spec.queues PerRxQueue"

	VLANOffload     Feature = "spec.nic.vlanOffload"
	RxRingSize      Feature = "spec.nic.rxRingSize"
	NICRxQueues     Feature = "spec.nic.rxQueues"
	RSSHash         Feature = "spec.nic.rss.hash"
	RSSFields       Feature = "spec.nic.rss.fields"
	RSSQueues       Feature = "spec.nic.rss.queues"
	ThreadedPolling Feature = "spec.nic.threadedPolling"
	DriverReplace   Feature = "spec.nic.driver.policy Replace"
)

// The features of queues, a ring's own and a Cluster's.
const (
	BalanceTCPFiveTuple  Feature = "spec.balance TCPFiveTuple"
	BalanceBothEnds      Feature = "spec.balance BothEnds"
	BalanceRxQueue       Feature = "spec.balance RxQueue"
	InnerHeader          Feature = "spec.balanceHeader Inner"
	FragmentsWithFlow    Feature = "spec.fragments WithFlow"
	WhenFullSpread       Feature = "spec.whenFull Spread"
	WhenUnattendedSpread Feature = "spec.whenUnattended Spread"
	LongHeader           Feature = "spec.packetHeader Long"
	InjectLibpcap        Feature = "spec.consumers.injectLibpcap"
	Namespaces           Feature = "spec.consumers.namespaces"
	NamespaceSelector    Feature = "spec.consumers.namespaceSelector"
	ClusterFilter        Feature = "spec.filter"
)

// everywhere is what the agent does itself, whichever engine captures.
var everywhere = []Feature{PodSelector, VLANOffload, RxRingSize, NICRxQueues, RSSHash, RSSFields, RSSQueues, ThreadedPolling, DriverReplace, InjectLibpcap, Namespaces, NamespaceSelector}

// served is what each engine does. What is in neither list nobody does yet.
var served = map[v1.Engine][]Feature{
	v1.EngineKernelModule: {
		TransparentMode1, TransparentMode2, QuickMode, ResourceName, RxQueues, VLANs, Rules, RuleLearn, RuleQueue, RuleReflect, RuleIdleTimeout, Payload, Plugins,
		Sampling, SamplingByFlow, Defragment, HardwareTimestamps, QueuesPerRxQueue,
		BalanceTCPFiveTuple, BalanceBothEnds, BalanceRxQueue, InnerHeader, FragmentsWithFlow,
		WhenFullSpread, WhenUnattendedSpread, LongHeader,
	},
	v1.EngineEBPF: {
		TransparentMode1, TransparentMode2, RxQueues, VLANs, Rules, RuleLearn, RuleQueue, RuleReflect, RuleIdleTimeout, Payload,
		Sampling, SamplingByFlow, QueuesPerRxQueue,
		BalanceTCPFiveTuple, BalanceBothEnds, BalanceRxQueue, InnerHeader, FragmentsWithFlow,
		WhenFullSpread, WhenUnattendedSpread, LongHeader,
	},
}

// Missing are those of the features that the engine does not serve.
func Missing(engine v1.Engine, asked []Feature) []Feature {
	return slices.DeleteFunc(slices.Clone(asked), func(f Feature) bool {
		return slices.Contains(everywhere, f) || slices.Contains(served[engine], f)
	})
}

// Others are the engines that serve all of the features.
func Others(asked []Feature) []v1.Engine {
	var engines []v1.Engine
	for _, engine := range []v1.Engine{v1.EngineKernelModule, v1.EngineEBPF} {
		if len(Missing(engine, asked)) == 0 {
			engines = append(engines, engine)
		}
	}
	return engines
}

// asked collects features.
type asked []Feature

func (a *asked) when(condition bool, f Feature) {
	if condition && !slices.Contains(*a, f) {
		*a = append(*a, f)
	}
}

// AskedByRing are the features that a ring asks for, besides those of its own queues.
func AskedByRing(s *v1.CaptureRingSpec) []Feature {
	var a asked
	a.when(s.Mode() == v1.TransparentModeDriver, TransparentMode1)
	a.when(s.Mode() == v1.TransparentModeRingOnly, TransparentMode2)
	a.when(s.QuickMode, QuickMode)
	for i := range s.Interfaces {
		a.when(s.Interfaces[i].ResourceName != "", ResourceName)
		a.when(s.Interfaces[i].PodSelector != nil, PodSelector)
		a.when(s.Interfaces[i].RxQueues != "", RxQueues)
	}
	if s.Filter != nil {
		a.filter(s.Filter)
	}
	a.when(s.Sampling != nil, Sampling)
	a.when(s.Sampling != nil && s.Sampling.By == v1.SampleByFlow, SamplingByFlow)
	a.when(s.Defragment, Defragment)
	a.when(s.Queues != nil && s.Queues.Type == intstr.String, QueuesPerRxQueue)
	a.when(s.Timestamps == v1.TimestampsHardware, HardwareTimestamps)
	a.nic(&s.NIC)
	return a
}

func (a *asked) filter(f *v1.Filter) {
	a.when(len(f.VLANs) > 0, VLANs)
	a.when(len(f.Rules) > 0 || f.DefaultAction == v1.DefaultActionDrop, Rules)
	for i := range f.Rules {
		a.when(f.Rules[i].Action == v1.RuleLearn, RuleLearn)
		a.when(f.Rules[i].Action == v1.RuleQueue, RuleQueue)
		a.when(f.Rules[i].Action == v1.RuleReflect, RuleReflect)
		a.when(f.Rules[i].IdleTimeout != nil, RuleIdleTimeout)
	}
	a.when(len(f.Payload) > 0, Payload)
	a.when(len(f.Plugins) > 0, Plugins)
}

func (a *asked) nic(n *v1.NIC) {
	a.when(n.VLANOffload == v1.VLANOffloadDisable, VLANOffload)
	a.when(n.RxRingSize != nil, RxRingSize)
	a.when(n.RxQueues != nil, NICRxQueues)
	a.when(n.RSS.Hash == v1.RSSHashSymmetric, RSSHash)
	a.when(n.RSS.Fields != "" && n.RSS.Fields != v1.RSSFieldsKeep, RSSFields)
	a.when(n.RSS.Queues != nil, RSSQueues)
	a.when(n.ThreadedPolling.Mode == v1.ThreadedPollingEnable, ThreadedPolling)
	a.when(n.Driver.Policy == v1.DriverReplace, DriverReplace)
}

// AskedByQueues are the features that a set of queues asks for.
func AskedByQueues(s *v1.ClusterSpec) []Feature {
	var a asked
	a.when(s.Balance == v1.BalanceTCPFiveTuple, BalanceTCPFiveTuple)
	a.when(s.Balance == v1.BalanceBothEnds, BalanceBothEnds)
	a.when(s.Balance == v1.BalanceRxQueue, BalanceRxQueue)
	a.when(s.BalanceHeader == v1.BalanceHeaderInner, InnerHeader)
	a.when(s.Fragments == v1.FragmentsWithFlow, FragmentsWithFlow)
	a.when(s.WhenFull == v1.QueuePolicySpread, WhenFullSpread)
	a.when(s.WhenUnattended == v1.QueuePolicySpread, WhenUnattendedSpread)
	a.when(s.PacketHeader == v1.PacketHeaderLong, LongHeader)
	if s.Consumers != nil {
		a.when(s.Consumers.InjectLibpcap, InjectLibpcap)
		a.when(len(s.Consumers.Namespaces) > 0, Namespaces)
		a.when(s.Consumers.NamespaceSelector != nil, NamespaceSelector)
	}
	a.when(s.Filter != nil, ClusterFilter)
	return a
}
