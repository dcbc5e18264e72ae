// SPDX-License-Identifier: Apache-2.0

package nic

// original is what an interface was like before it was changed; what was not changed is not in it.
type original struct {
	// Index and Device tell an interface from a later one of its name. Device is the hardware's address, empty without: it
	// stays when the interface is recreated, as by another driver.
	Index  int    `json:"index"`
	Device string `json:"device,omitempty"`
	// Values by tunable. The link's is always there.
	Values map[string]string `json:"values"`
	// Settled by tunable, where a driver set another value than the desired one.
	Settled map[string]settled `json:"settled,omitempty"`
}

// settled is what a driver was told and what it made of that: telling it again would reset the NIC for nothing.
type settled struct {
	Wanted string `json:"wanted"`
	Actual string `json:"actual"`
}

// same reports whether it is of this very interface.
func (o original) same(index int, device string) bool {
	return o.Index == index || o.Device != "" && o.Device == device
}
