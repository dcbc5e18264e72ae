// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API of ringcap. CaptureRing and Cluster define what is captured. PodCapture captures pods of one
// namespace. NodeCapture is the desired and the actual state of one node.
//
// +kubebuilder:object:generate=true
// +groupName=ringcap.io
package v1alpha1
