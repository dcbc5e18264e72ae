// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// DriverFact describes an interface's driver.
type DriverFact struct {
	// Name of the driver; empty if the kernel reports none.
	Name string
	// Aware means that the driver offers packets to ringcap before the stack has them.
	Aware bool
	// Replacement is the aware driver that can take its place. If it is empty, there is none, and Obstacle has the
	// reason.
	Replacement, Obstacle string
	// Stock is the driver that this agent replaced with Name; empty if it replaced none.
	Stock string
	// Failed is why a replacement was undone. NextTry is when it is tried again if it is still desired then; zero if
	// it is not tried again.
	Failed  string
	NextTry time.Time
}

// Failure explains why a replacement failed, and the consequence; empty if none failed.
func (f DriverFact) Failure() string {
	switch {
	case f.Failed == "":
		return ""
	case f.NextTry.IsZero():
		return f.Failed + "; to try again, set spec.nic.driver.policy to Keep and back"
	}
	return fmt.Sprintf("%s; it is tried again after %s", f.Failed, f.NextTry.UTC().Format(time.RFC3339))
}

// DesiredDriver is the capture-aware driver that an interface needs.
type DesiredDriver struct {
	// Driver that is to be bound.
	Driver string
	// Ring that asks for it.
	Ring string
	// LinkTimeout is how long the link may take to come back.
	LinkTimeout time.Duration
}

// defaultLinkTimeout is the default of the CRD.
const defaultLinkTimeout = 10 * time.Second

// driversAreAware checks modes 1 and 2 in the module: each interface needs an aware driver, or gets one. With
// transparentFallback Stack, a ring that cannot have its mode captures from the stack.
func driversAreAware(d *ringDraft) *problem {
	d.mode = int32(d.spec.Mode())
	if d.mode == 0 || d.engine != v1.EngineKernelModule {
		return nil
	}
	var refused *problem
	for _, tap := range d.taps {
		if p := d.requireAwareDriver(tap); p != nil && (refused == nil || refused.reason == v1.ReasonPending) {
			refused = p
		}
	}
	if refused != nil && refused.reason != v1.ReasonPending && d.spec.TransparentFallback == v1.TransparentFallbackStack {
		d.mode, d.modeReason = 0, refused.message+"; captured in mode 0, as spec.transparentFallback allows"
		return nil
	}
	return refused
}

// requireAwareDriver returns why an interface cannot have an aware driver. It asks for one where that helps.
func (d *ringDraft) requireAwareDriver(tap capture.Tap) *problem {
	fact, policy, traffic := d.facts.driver(tap.Interface), d.spec.NIC.Driver, d.facts.nodeTraffic(tap.Interface)
	want := fmt.Sprintf("spec.transparentMode %d needs a capture-aware driver, and %s of %s is not", d.mode, fact.called(), tap.Interface)
	switch {
	case policy.Policy != v1.DriverReplace && fact.Aware:
		return nil
	case policy.Policy != v1.DriverReplace:
		return problemf(v1.ReasonDriverNotAware, "%s: use mode 0, set spec.nic.driver.policy to Replace, or set spec.transparentFallback to Stack", want)
	case fact.Aware && fact.Stock == "":
		return nil
	case fact.Aware:
		d.setDriver(tap.Interface, fact.Name)
		return nil
	case fact.Replacement == "":
		return problemf(v1.ReasonDriverNotAware, "%s, and it cannot be replaced: %s", want, fact.Obstacle)
	case traffic != "" && !d.mayReplaceDriver():
		return problemf(v1.ReasonDriverReplaceRefused,
			"%s; it is not replaced because the interface %s: if the node can do without it, set spec.nodeTraffic to Allow", want, traffic)
	}
	d.setDriver(tap.Interface, fact.Replacement)
	if why := fact.Failure(); why != "" {
		return problemf(v1.ReasonDriverReplaceFailed, "%s; replacing it by %s failed: %s", want, fact.Replacement, why)
	}
	return problemf(v1.ReasonPending, "%s: it is being replaced by %s", want, fact.Replacement)
}

func (d *ringDraft) setDriver(iface, driver string) {
	timeout := defaultLinkTimeout
	if t := d.spec.NIC.Driver.LinkTimeout; t != nil {
		timeout = t.Duration
	}
	if d.drivers == nil {
		d.drivers = map[string]DesiredDriver{}
	}
	d.drivers[iface] = DesiredDriver{Driver: driver, Ring: d.name, LinkTimeout: timeout}
}

// noteDrivers adds a ring's desired drivers to those of earlier rings. The first ring's timeout applies.
func (b *builder) noteDrivers(d ringDraft) {
	for iface, desired := range d.drivers {
		if _, taken := b.result.Drivers[iface]; !taken {
			b.result.Drivers[iface] = desired
		}
	}
}

func (f DriverFact) called() string {
	if f.Name == "" {
		return "the driver"
	}
	return "driver " + f.Name
}

func (f Facts) driver(iface string) DriverFact {
	found, _ := f.named(iface)
	return found.DriverFact
}
