// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The defaults of the API. In a cluster the API server sets them from the CRD; where manifests are read from files,
// Default does. A test compares the two.
const (
	DefaultSlots            = 4096
	DefaultWatermark        = 10
	DefaultWatermarkTimeout = 10 * time.Millisecond
	DefaultMemoryLimit      = "1Gi"
	DefaultLinkTimeout      = 10 * time.Second
	DefaultHungAfter        = 250 * time.Millisecond
)

// Default sets the fields that are not set.
func (s *QueueSettings) Default() {
	setDefault(&s.Balance, BalanceFlow)
	setDefault(&s.BalanceHeader, BalanceHeaderOuter)
	setDefault(&s.Fragments, FragmentsTogether)
	setDefault(&s.WhenFull, QueuePolicyDrop)
	setDefault(&s.WhenUnattended, QueuePolicyDrop)
	setDefault(&s.PacketHeader, PacketHeaderShort)
	setDefault(&s.Slots, DefaultSlots)
	setDefault(&s.Watermark, DefaultWatermark)
	if s.WatermarkTimeout == nil {
		s.WatermarkTimeout = &metav1.Duration{Duration: DefaultWatermarkTimeout}
	}
	if s.MemoryLimit == nil {
		limit := resource.MustParse(DefaultMemoryLimit)
		s.MemoryLimit = &limit
	}
}

// Default sets the fields that are not set.
func (s *CaptureRingSpec) Default() {
	setDefault(&s.Direction, DirectionReceive)
	setDefault(&s.Engine, EngineAuto)
	setDefault(&s.TransparentFallback, TransparentFallbackRefuse)
	setDefault(&s.XDP, XDPNative)
	setDefault(&s.NodeTraffic, NodeTrafficRefuse)
	setDefault(&s.Timestamps, TimestampsSoftware)
	if s.TransparentMode == nil {
		s.TransparentMode = new(TransparentMode)
	}
	if s.Sampling != nil {
		setDefault(&s.Sampling.By, SampleByPacket)
	}
	if s.Inline != nil {
		s.Inline.Default()
	}
	s.NIC.Default()
	s.QueueSettings.Default()
}

// Default sets the fields that are not set.
func (i *Inline) Default() {
	setDefault(&i.WhenUnattended, InlineBypass)
	setDefault(&i.WhenFull, InlineBypass)
	setDefault(&i.WhenHung, InlineBypass)
	if i.HungAfter == nil {
		i.HungAfter = &metav1.Duration{Duration: DefaultHungAfter}
	}
}

// Default sets the fields that are not set.
func (n *NIC) Default() {
	if n.Promiscuous == nil {
		promiscuous := true
		n.Promiscuous = &promiscuous
	}
	setDefault(&n.Offloads, OffloadsDisable)
	setDefault(&n.VLANOffload, VLANOffloadKeep)
	setDefault(&n.RSS.Hash, RSSHashKeep)
	setDefault(&n.RSS.Fields, RSSFieldsKeep)
	setDefault(&n.ThreadedPolling.Mode, ThreadedPollingKeep)
	setDefault(&n.Driver.Policy, DriverKeep)
	setDefault(&n.Driver.NodeTraffic, NodeTrafficRefuse)
	if n.Driver.LinkTimeout == nil {
		n.Driver.LinkTimeout = &metav1.Duration{Duration: DefaultLinkTimeout}
	}
}

// Default sets the fields that are not set.
func (s *ClusterSpec) Default() { s.QueueSettings.Default() }

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
