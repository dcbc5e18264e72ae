// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func TestDriversForTransparentModes(t *testing.T) {
	stock := DriverFact{Name: "igb", Replacement: "igb_ringcap"}
	with := func(change func(*DriverFact)) DriverFact { f := stock; change(&f); return f }
	replace := func(s *v1.CaptureRingSpec) { s.NIC.Driver.Policy = v1.DriverReplace }
	desired := map[string]DesiredDriver{"eth0": {Driver: "igb_ringcap", Ring: "mirror", LinkTimeout: 10 * time.Second}}
	for name, test := range map[string]struct {
		fact    DriverFact
		spec    func(*v1.CaptureRingSpec)
		reason  string
		message string
		mode    int32
		desired map[string]DesiredDriver
	}{
		"not aware":            {fact: stock, reason: v1.ReasonDriverNotAware, message: "driver igb of eth0 is not"},
		"aware":                {fact: DriverFact{Name: "igb_ringcap", Aware: true}, mode: 2},
		"falls back":           {fact: stock, spec: func(s *v1.CaptureRingSpec) { s.TransparentFallback = v1.TransparentFallbackStack }, mode: 0},
		"is to be replaced":    {fact: stock, spec: replace, reason: v1.ReasonPending, message: "is being replaced by igb_ringcap", desired: desired},
		"is replaced":          {fact: DriverFact{Name: "igb_ringcap", Aware: true, Stock: "igb"}, spec: replace, mode: 2, desired: desired},
		"was not ours":         {fact: DriverFact{Name: "igb_ringcap", Aware: true}, spec: replace, mode: 2},
		"could not be":         {fact: with(func(f *DriverFact) { f.Failed = "no link" }), spec: replace, reason: v1.ReasonDriverReplaceFailed, message: "failed: no link", desired: desired},
		"is tried again":       {fact: with(func(f *DriverFact) { f.Failed, f.NextTry = "no link", time.Unix(0, 0) }), spec: replace, reason: v1.ReasonDriverReplaceFailed, message: "no link; it is tried again after 1970-01-01T00:00:00Z", desired: desired},
		"cannot be":            {fact: with(func(f *DriverFact) { f.Replacement, f.Obstacle = "", "it has VFs" }), spec: replace, reason: v1.ReasonDriverNotAware, message: "cannot be replaced: it has VFs"},
		"replaced or stack":    {fact: stock, reason: v1.ReasonPending, message: "being replaced", desired: desired, spec: func(s *v1.CaptureRingSpec) { replace(s); s.TransparentFallback = v1.TransparentFallbackStack }},
		"failed, so the stack": {fact: with(func(f *DriverFact) { f.Failed = "no link" }), desired: desired, spec: func(s *v1.CaptureRingSpec) { replace(s); s.TransparentFallback = v1.TransparentFallbackStack }},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Interfaces[1].DriverFact = test.fact
			asked := ring("mirror", func(s *v1.CaptureRingSpec) {
				mode := v1.TransparentMode(2)
				s.TransparentMode, s.TransparentFallback = &mode, v1.TransparentFallbackRefuse
				if test.spec != nil {
					test.spec(s)
				}
			})
			got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{asked}}, f)
			verdict := got.Rings["mirror"]
			assert.Equal(t, test.reason, verdict.Reason)
			assert.Contains(t, verdict.Message, test.message)
			assert.Equal(t, test.reason == "", verdict.Planned)
			if test.desired == nil {
				test.desired = map[string]DesiredDriver{}
			}
			assert.Equal(t, test.desired, got.Drivers)
			if verdict.Planned {
				assert.Equal(t, test.mode, verdict.TransparentMode)
				assert.Equal(t, test.mode == 0, verdict.TransparentReason != "")
				assert.EqualValues(t, test.mode, got.Plans[v1.EngineKernelModule].Rings[0].Mode)
			}
		})
	}
}

func TestLinkTimeout(t *testing.T) {
	f := facts()
	f.Interfaces[1].DriverFact = DriverFact{Name: "igb", Replacement: "igb_ringcap"}
	mode := v1.TransparentMode(1)
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("mirror", func(s *v1.CaptureRingSpec) {
		s.TransparentMode = &mode
		s.NIC.Driver = v1.DriverPolicy{Policy: v1.DriverReplace, LinkTimeout: &metav1.Duration{Duration: time.Minute}}
	})}}, f)
	assert.Equal(t, time.Minute, got.Drivers["eth0"].LinkTimeout)
	assert.Equal(t, capture.Plan{}, got.Plans[v1.EngineKernelModule])
}
