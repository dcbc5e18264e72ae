// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// The engine refuses by name what it lacks, and never ignores it. docs/engines.md has the reasons.

func unsupported(what string) error {
	return fmt.Errorf("%s: %w", what, capture.ErrUnsupported)
}

func supportedRing(r capture.Ring) error {
	switch {
	case r.Defragment:
		return unsupported("defragmentation")
	case r.HardwareTime:
		return unsupported("hardware time stamps")
	case len(r.Plugins) > 0:
		return unsupported("plugins")
	case r.Mode > 2:
		return unsupported(fmt.Sprintf("transparent mode %d", r.Mode))
	}
	if r.Mode != 0 {
		return supportedXDP(r)
	}
	return nil
}

// supportedXDP checks the settings of modes 1 and 2.
func supportedXDP(r capture.Ring) error {
	for _, t := range r.Taps {
		if t.Direction != capture.Receive {
			return unsupported(fmt.Sprintf("tap on %s: transparent mode %d of what is sent: XDP sees what is received", t.Interface, r.Mode))
		}
	}
	if r.Rules.Default == capture.ActionReflect {
		return unsupported("reflecting packets in transparent modes 1 and 2")
	}
	for _, rule := range r.Rules.Exact {
		if rule.Action == capture.ActionReflect {
			return unsupported("reflecting packets in transparent modes 1 and 2")
		}
	}
	for _, rule := range r.Rules.Wildcard {
		if rule.Action == capture.ActionReflect {
			return unsupported(fmt.Sprintf("wildcard rule %d: reflecting packets in transparent modes 1 and 2", rule.ID))
		}
	}
	return nil
}
