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
	DefaultMemoryLimit      = "256Mi"
	DefaultSnapLength       = 1536
)

// Default sets the fields that are not given.
func (s *QueueSettings) Default() {
	setDefault(&s.Balance, BalanceFlow)
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

// Default sets the fields that are not given.
func (s *CaptureRingSpec) Default() {
	setDefault(&s.Direction, DirectionReceive)
	setDefault(&s.Engine, EngineAuto)
	setDefault(&s.SnapLength, DefaultSnapLength)
	setDefault(&s.NIC.Offloads, OffloadsDisable)
	if s.TransparentMode == nil {
		s.TransparentMode = new(int32)
	}
	if s.NIC.Promiscuous == nil {
		promiscuous := true
		s.NIC.Promiscuous = &promiscuous
	}
	s.QueueSettings.Default()
}

// Default sets the fields that are not given.
func (s *ClusterSpec) Default() { s.QueueSettings.Default() }

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
