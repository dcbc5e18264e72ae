// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// What this engine lacks is refused by name, never ignored; docs/engines.md says why each.

func unsupported(what string) error {
	return fmt.Errorf("%s: %w", what, capture.ErrUnsupported)
}

func supportedCluster(c capture.Cluster) error {
	switch {
	case c.Balance > capture.BalanceRoundRobin:
		return unsupported(fmt.Sprintf("balance type %d", c.Balance))
	case c.Inner:
		return unsupported("balance by inner headers")
	case c.Fragments != capture.FragmentsTogether:
		return unsupported("fragments with their flow")
	case c.WhenFull != capture.PolicyDrop:
		return unsupported("whenFull other than drop")
	case c.WhenUnattended != capture.PolicyDrop:
		return unsupported("whenUnattended other than drop")
	}
	return nil
}

func supportedRing(r capture.Ring) error {
	switch {
	case r.Mode != 0:
		return unsupported(fmt.Sprintf("transparent mode %d", r.Mode))
	case r.Quick:
		return unsupported("quick mode")
	case len(r.VLANs) > 0:
		return unsupported("a list of VLANs")
	case r.Sampling.OneIn > 1:
		return unsupported("sampling")
	case !r.Rules.Empty():
		return unsupported("rules and payload patterns")
	case r.Defragment:
		return unsupported("defragmentation")
	case r.HardwareTime:
		return unsupported("hardware time stamps")
	}
	for _, t := range r.Taps {
		if len(t.RxQueues) > 0 {
			return unsupported(fmt.Sprintf("tap on %s: a choice of receive queues", t.Interface))
		}
	}
	return nil
}
