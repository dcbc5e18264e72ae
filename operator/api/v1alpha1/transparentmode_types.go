// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"
)

// TransparentMode says where packets are taken: a number, or in manifests a word. It is always written as the number.
type TransparentMode int32

// The modes, and their words.
const (
	// TransparentModeStack takes packets from the stack's receive and transmit path.
	TransparentModeStack TransparentMode = 0
	// TransparentModeDriver takes them before the stack sees them, which gets them too.
	TransparentModeDriver TransparentMode = 1
	// TransparentModeRingOnly takes them before the stack, which never sees them.
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
