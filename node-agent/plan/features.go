// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// feature is a field of the API, or a value of one, that not every engine serves. It is written as in a manifest.
type feature string

// The features of rings.
const (
	featureTransparentMode1   feature = "spec.transparentMode 1"
	featureTransparentMode2   feature = "spec.transparentMode 2"
	featureResourceName       feature = "spec.interfaces[].resourceName"
	featurePodSelector        feature = "spec.interfaces[].podSelector"
	featureRxQueues           feature = "spec.interfaces[].rxQueues"
	featureVLANs              feature = "spec.filter.vlans"
	featureRules              feature = "spec.filter.rules"
	featureRuleLearn          feature = "spec.filter.rules[].action Learn"
	featureRuleQueue          feature = "spec.filter.rules[].action Queue"
	featureRuleReflect        feature = "spec.filter.rules[].action Reflect"
	featureRuleIdleTimeout    feature = "spec.filter.rules[].idleTimeout"
	featurePayload            feature = "spec.filter.payload"
	featurePlugins            feature = "spec.filter.plugins"
	featureSampling           feature = "spec.sampling"
	featureSamplingByFlow     feature = "spec.sampling.by Flow"
	featureDefragment         feature = "spec.defragment"
	featureHardwareTimestamps feature = "spec.timestamps Hardware"
	featureQueuesPerRxQueue   feature = "spec.queues PerRxQueue"
	featureInline             feature = "spec.inline"

	featureVLANOffload     feature = "spec.nic.vlanOffload"
	featureRxRingSize      feature = "spec.nic.rxRingSize"
	featureNICRxQueues     feature = "spec.nic.rxQueues"
	featureRSSHash         feature = "spec.nic.rss.hash"
	featureRSSFields       feature = "spec.nic.rss.fields"
	featureRSSQueues       feature = "spec.nic.rss.queues"
	featureThreadedPolling feature = "spec.nic.threadedPolling"
	featureDriverReplace   feature = "spec.nic.driver.policy Replace"
)

// The features of queues, a ring's own and a Cluster's.
const (
	featureBalanceTCPFiveTuple  feature = "spec.balance TCPFiveTuple"
	featureBalanceBothEnds      feature = "spec.balance BothEnds"
	featureBalanceRxQueue       feature = "spec.balance RxQueue"
	featureInnerHeader          feature = "spec.balanceHeader Inner"
	featureFragmentsWithFlow    feature = "spec.fragments WithFlow"
	featureWhenFullSpread       feature = "spec.whenFull Spread"
	featureWhenUnattendedSpread feature = "spec.whenUnattended Spread"
	featureLongHeader           feature = "spec.packetHeader Long"
	featureInjectLibpcap        feature = "spec.consumers.injectLibpcap"
	featureNamespaces           feature = "spec.consumers.namespaces"
	featureNamespaceSelector    feature = "spec.consumers.namespaceSelector"
	featureShunt                feature = "spec.consumers.shunt"
	featureClusterFilter        feature = "spec.filter"
)

// everywhere lists what the agent does itself, with both engines.
var everywhere = []feature{
	featurePodSelector, featureVLANOffload, featureRxRingSize, featureNICRxQueues, featureRSSHash, featureRSSFields, featureRSSQueues,
	featureThreadedPolling, featureDriverReplace, featureInjectLibpcap, featureNamespaces, featureNamespaceSelector,
}

// served lists what each engine does. No engine does what is in neither list.
var served = map[v1.Engine][]feature{
	v1.EngineKernelModule: {
		featureTransparentMode1, featureTransparentMode2, featureResourceName, featureRxQueues, featureVLANs,
		featureRules, featureRuleLearn, featureRuleQueue, featureRuleReflect, featureRuleIdleTimeout, featurePayload, featurePlugins,
		featureSampling, featureSamplingByFlow, featureDefragment, featureHardwareTimestamps, featureQueuesPerRxQueue, featureInline,
		featureBalanceTCPFiveTuple, featureBalanceBothEnds, featureBalanceRxQueue, featureInnerHeader, featureFragmentsWithFlow,
		featureWhenFullSpread, featureWhenUnattendedSpread, featureLongHeader, featureShunt,
	},
	v1.EngineEBPF: {
		featureTransparentMode1, featureTransparentMode2, featureRxQueues, featureVLANs,
		featureRules, featureRuleLearn, featureRuleQueue, featureRuleReflect, featureRuleIdleTimeout, featurePayload,
		featureSampling, featureSamplingByFlow, featureQueuesPerRxQueue,
		featureBalanceTCPFiveTuple, featureBalanceBothEnds, featureBalanceRxQueue, featureInnerHeader, featureFragmentsWithFlow,
		featureWhenFullSpread, featureWhenUnattendedSpread, featureLongHeader, featureShunt,
	},
}

// missingFeatures returns the features that the engine does not serve.
func missingFeatures(engine v1.Engine, asked []feature) []feature {
	return slices.DeleteFunc(slices.Clone(asked), func(f feature) bool {
		return slices.Contains(everywhere, f) || slices.Contains(served[engine], f)
	})
}

// enginesFor returns the engines that serve all of the features.
func enginesFor(asked []feature) []v1.Engine {
	var engines []v1.Engine
	for _, engine := range []v1.Engine{v1.EngineKernelModule, v1.EngineEBPF} {
		if len(missingFeatures(engine, asked)) == 0 {
			engines = append(engines, engine)
		}
	}
	return engines
}

// asked collects features.
type asked []feature

func (a *asked) when(condition bool, f feature) {
	if condition && !slices.Contains(*a, f) {
		*a = append(*a, f)
	}
}

// askedByRing returns the features that a ring asks for, except those of its own queues.
func askedByRing(s *v1.CaptureRingSpec) []feature {
	var a asked
	a.when(s.Mode() == v1.TransparentModeDriver, featureTransparentMode1)
	a.when(s.Mode() == v1.TransparentModeRingOnly, featureTransparentMode2)
	for i := range s.Interfaces {
		a.when(s.Interfaces[i].ResourceName != "", featureResourceName)
		a.when(s.Interfaces[i].PodSelector != nil, featurePodSelector)
		a.when(s.Interfaces[i].RxQueues != "", featureRxQueues)
	}
	if s.Filter != nil {
		a.filter(s.Filter)
	}
	a.when(s.Sampling != nil, featureSampling)
	a.when(s.Sampling != nil && s.Sampling.By == v1.SampleByFlow, featureSamplingByFlow)
	a.when(s.Defragment, featureDefragment)
	a.when(s.Queues != nil && s.Queues.Type == intstr.String, featureQueuesPerRxQueue)
	a.when(s.Inline != nil, featureInline)
	a.when(s.Timestamps == v1.TimestampsHardware, featureHardwareTimestamps)
	a.nic(&s.NIC)
	return a
}

func (a *asked) filter(f *v1.Filter) {
	a.when(len(f.VLANs) > 0, featureVLANs)
	a.when(len(f.Rules) > 0 || f.DefaultAction == v1.DefaultActionDrop, featureRules)
	for i := range f.Rules {
		a.when(f.Rules[i].Action == v1.RuleLearn, featureRuleLearn)
		a.when(f.Rules[i].Action == v1.RuleQueue, featureRuleQueue)
		a.when(f.Rules[i].Action == v1.RuleReflect, featureRuleReflect)
		a.when(f.Rules[i].IdleTimeout != nil, featureRuleIdleTimeout)
	}
	a.when(len(f.Payload) > 0, featurePayload)
	a.when(len(f.Plugins) > 0, featurePlugins)
}

func (a *asked) nic(n *v1.NIC) {
	a.when(n.VLANOffload == v1.VLANOffloadDisable, featureVLANOffload)
	a.when(n.RxRingSize != nil, featureRxRingSize)
	a.when(n.RxQueues != nil, featureNICRxQueues)
	a.when(n.RSS.Hash == v1.RSSHashSymmetric, featureRSSHash)
	a.when(n.RSS.Fields != "" && n.RSS.Fields != v1.RSSFieldsKeep, featureRSSFields)
	a.when(n.RSS.Queues != nil, featureRSSQueues)
	a.when(n.ThreadedPolling.Mode == v1.ThreadedPollingEnable, featureThreadedPolling)
	a.when(n.Driver.Policy == v1.DriverReplace, featureDriverReplace)
}

// askedByQueues returns the features that a set of queues asks for.
func askedByQueues(s *v1.ClusterSpec) []feature {
	var a asked
	a.when(s.Balance == v1.BalanceTCPFiveTuple, featureBalanceTCPFiveTuple)
	a.when(s.Balance == v1.BalanceBothEnds, featureBalanceBothEnds)
	a.when(s.Balance == v1.BalanceRxQueue, featureBalanceRxQueue)
	a.when(s.BalanceHeader == v1.BalanceHeaderInner, featureInnerHeader)
	a.when(s.Fragments == v1.FragmentsWithFlow, featureFragmentsWithFlow)
	a.when(s.WhenFull == v1.QueuePolicySpread, featureWhenFullSpread)
	a.when(s.WhenUnattended == v1.QueuePolicySpread, featureWhenUnattendedSpread)
	a.when(s.PacketHeader == v1.PacketHeaderLong, featureLongHeader)
	if s.Consumers != nil {
		a.when(s.Consumers.InjectLibpcap, featureInjectLibpcap)
		a.when(len(s.Consumers.Namespaces) > 0, featureNamespaces)
		a.when(s.Consumers.NamespaceSelector != nil, featureNamespaceSelector)
		a.when(s.Consumers.Shunt != 0, featureShunt)
	}
	a.when(s.Filter != nil, featureClusterFilter)
	return a
}
