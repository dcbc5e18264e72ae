// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/util/intstr"

// QueueCount is the number of queues in the spec; 0 for PerRxQueue, because the number differs between nodes.
func QueueCount(queues *intstr.IntOrString) int32 {
	if queues == nil || queues.Type == intstr.String {
		return 0
	}
	return queues.IntVal
}

// Queues is a number of queues as a CaptureRing writes it.
func Queues(n int32) *intstr.IntOrString {
	queues := intstr.FromInt32(n)
	return &queues
}
