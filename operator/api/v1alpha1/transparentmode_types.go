// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"
)

// TransparentMode is where packets are captured: a number, or in manifests a word. It is always written as the number.
type TransparentMode int32

// The modes, and their words.
const (
	// TransparentModeStack captures in the receive and transmit path of the network stack.
	TransparentModeStack TransparentMode = 0
	// TransparentModeDriver captures in the driver, before the stack, which gets the packets too.
	TransparentModeDriver TransparentMode = 1
	// TransparentModeRingOnly captures in the driver; the stack never gets the packets.
	TransparentModeRingOnly TransparentMode = 2
)

var transparentModes = []string{"Stack", "Driver", "RingOnly"}

// UnmarshalJSON implements json.Unmarshaler.
func (m *TransparentMode) UnmarshalJSON(text []byte) error {
	var word string
	if json.Unmarshal(text, &word) != nil {
		return json.Unmarshal(text, (*int32)(m))
	}
	i := slices.Index(transparentModes, word)
	if i < 0 {
		return fmt.Errorf("transparentMode %q: must be 0 (Stack), 1 (Driver) or 2 (RingOnly)", word)
	}
	*m = TransparentMode(i)
	return nil
}

// Mode is the transparent mode that the ring asks for.
func (s *CaptureRingSpec) Mode() TransparentMode {
	if s.TransparentMode == nil {
		return TransparentModeStack
	}
	return *s.TransparentMode
}
