// SPDX-License-Identifier: Apache-2.0

// Package event is what operator and agents have in common in making Kubernetes Events.
package event

import "strings"

// MaxNote is the most bytes that the API server takes of an Event's note.
const MaxNote = 1024

// Note is as much of a message as the API server takes.
func Note(message string) string {
	if len(message) <= MaxNote {
		return message
	}
	return strings.ToValidUTF8(message[:MaxNote], "")
}
