// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// maxRxQueue is the greatest number of a receive queue that a tap can tell apart: RINGCAP_RX_QUEUES_MAX - 1.
const maxRxQueue = 1023

// selects reports whether the selector selects the interface: every field that it sets must match. The error is that
// of a malformed glob.
func selects(s v1.InterfaceSelector, i Interface) (bool, error) {
	for _, part := range []struct{ field, glob, value string }{
		{"name", s.Name, i.Name}, {"driver", s.Driver, i.Driver}, {"pciAddress", s.PCIAddress, i.PCIAddress},
	} {
		if part.glob == "" {
			continue
		}
		ok, err := path.Match(part.glob, part.value)
		if err != nil {
			return false, fmt.Errorf("%s %q is not a name or a glob: %w", part.field, part.glob, err)
		}
		if !ok {
			return false, nil
		}
	}
	return s.Name+s.Driver+s.PCIAddress != "", nil
}

// describeSelector returns the selector's fields, for messages.
func describeSelector(s v1.InterfaceSelector) string {
	var parts []string
	for _, part := range []struct{ field, glob string }{{"name", s.Name}, {"driver", s.Driver}, {"pciAddress", s.PCIAddress}} {
		if part.glob != "" {
			parts = append(parts, fmt.Sprintf("%s %q", part.field, part.glob))
		}
	}
	return strings.Join(parts, ", ")
}

// parseRxQueues reads a list of numbers and ranges such as 0-3,8. It returns nil for an empty list.
func parseRxQueues(list string) ([]uint16, error) {
	if list == "" {
		return nil, nil
	}
	all, err := capture.ParseNumbers(list, maxRxQueue)
	if err != nil {
		return nil, err
	}
	queues := make([]uint16, 0, len(all))
	for _, n := range all {
		queues = append(queues, uint16(n))
	}
	slices.Sort(queues)
	return slices.Compact(queues), nil
}
