// SPDX-License-Identifier: Apache-2.0

package nic

// original is the state of an interface before it was changed. It has only what was changed.
type original struct {
	// Index and Device tell an interface from a later one of its name. Device is the hardware's address, empty if
	// there is none. It stays when the interface is recreated, as by another driver.
	Index  int    `json:"index"`
	Device string `json:"device,omitempty"`
	// Values by tunable. The link's value is always there.
	Values map[string]string `json:"values"`
	// Settled by tunable, if a driver set another value than the desired one.
	Settled map[string]settled `json:"settled,omitempty"`
}

// settled is a value that a driver was given, and the value that it set. To give it again would reset the NIC for
// nothing.
type settled struct {
	Wanted string `json:"wanted"`
	Actual string `json:"actual"`
}

// same reports whether the record is of this very interface.
func (o original) same(index int, device string) bool {
	return o.Index == index || o.Device != "" && o.Device == device
}
