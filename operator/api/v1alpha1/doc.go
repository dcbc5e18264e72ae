// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API of ringcap: CaptureRing and Cluster say what to capture, NodeCapture what one node
// shall do and does.
//
// +kubebuilder:object:generate=true
// +groupName=ringcap.io
package v1alpha1
