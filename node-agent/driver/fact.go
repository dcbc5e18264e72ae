// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/ringcap/ringcap/node-agent/plan"
)

// describe returns the facts of an interface's driver for the plan.
func (s sysfs) describe(link netlink.Link) plan.DriverFact {
	name := link.Attrs().Name
	h, err := s.of(name)
	if err != nil {
		kind := link.Type()
		fact := plan.DriverFact{Aware: s.aware(name, kind), Obstacle: "it is no device on a bus; software interfaces are made aware by loading an aware module instead of the stock one"}
		if kind != "device" {
			fact.Name = kind
		}
		return fact
	}
	fact := plan.DriverFact{Name: s.bound(h), Aware: s.aware(name, "")}
	if fact.Aware {
		return fact
	}
	replacement := fact.Name + Suffix
	if fact.Obstacle = s.obstacle(name, h, replacement); fact.Obstacle != "" {
		return fact
	}
	fact.Replacement = replacement
	return fact
}

// obstacle returns why a driver cannot be replaced; empty if it can.
func (s sysfs) obstacle(name string, h hardware, replacement string) string {
	_, uppers := s.uppers(name)
	switch {
	case !s.loaded(h.Bus, replacement):
		return fmt.Sprintf("no driver %s is loaded (the module loader loads it if the agent's image has it for this kernel; drivers/build makes it)", replacement)
	case s.virtualFunctions(h):
		return "it has virtual functions, which would be lost: set sriov_numvfs to 0 first"
	case len(s.interfaces(h)) != 1:
		return fmt.Sprintf("device %s has several interfaces: %s", h.Address, strings.Join(s.interfaces(h), ", "))
	case len(uppers) > 0:
		return fmt.Sprintf("%s on top of it would be lost", strings.Join(uppers, ", "))
	}
	return ""
}
