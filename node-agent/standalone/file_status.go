// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// FileStatus is what the status file has: the status of what is captured, and what of the folder is not. A manifest
// that was refused has no ring in the status, or one of before the change.
type FileStatus struct {
	v1.NodeCaptureStatus
	// Refused holds a text for each document that could not be used: its file and what is wrong.
	Refused []string `json:"refused,omitempty"`
	// Ignored holds a text for each document of another kind, and for each ring of other machines.
	Ignored []string `json:"ignored,omitempty"`
}

func fileStatus(manifests Manifests, status v1.NodeCaptureStatus) FileStatus {
	file := FileStatus{NodeCaptureStatus: status, Ignored: manifests.Ignored}
	for _, problem := range manifests.Problems {
		file.Refused = append(file.Refused, problem.Error())
	}
	return file
}
