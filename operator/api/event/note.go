// SPDX-License-Identifier: Apache-2.0

// Package event is shared by operator and agents to emit Kubernetes Events.
package event

import "strings"

// MaxNote is the API server's limit of an Event's note, bytes.
const MaxNote = 1024

// Note cuts a message to MaxNote.
func Note(message string) string {
	if len(message) <= MaxNote {
		return message
	}
	return strings.ToValidUTF8(message[:MaxNote], "")
}
