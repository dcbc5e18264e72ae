// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API of ringcap: CaptureRing and Cluster say what to capture, PodCapture that pods of one
// namespace are captured, NodeCapture what one node is asked for and does.
//
// +kubebuilder:object:generate=true
// +groupName=ringcap.io
package v1alpha1
