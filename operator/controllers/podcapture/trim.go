// SPDX-License-Identifier: Apache-2.0

package podcapture

import (
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// specBytes is an annotation that a PodCapture has only in the cache: the size of a spec that was left out.
const specBytes = "ringcap.io/spec-bytes"

// Trim limits the memory of a PodCapture in the cache to a few KiB: users who may edit a namespace can create hundreds of a MiB
// each, and the operator also works for others. A spec that is too large for a ring is left out.
func Trim(object any) (any, error) {
	capture, ok := object.(*v1alpha1.PodCapture)
	// The cache may call this again for its own objects. The API server sets queues: without it the spec was left out before.
	if !ok || capture.Spec.Queues == 0 {
		return object, nil
	}
	m := &capture.ObjectMeta
	*m = metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}
	if text, _ := json.Marshal(capture.Spec); len(text) > maxBytes {
		capture.Spec = v1alpha1.PodCaptureSpec{}
		m.Annotations = map[string]string{specBytes: strconv.Itoa(len(text))}
	}
	return capture, nil
}

// leftOut refuses a PodCapture if Trim left out its spec. Its ring's spec would not be smaller.
func leftOut(capture *v1alpha1.PodCapture) *refusal {
	bytes := capture.Annotations[specBytes]
	if bytes == "" {
		return nil
	}
	return tooLong(bytes)
}

func tooLong(bytes string) *refusal {
	return &refusal{v1alpha1.ReasonLimitExceeded, fmt.Sprintf(
		"spec takes %s bytes in each node's NodeCapture, and a PodCapture may take %d: write a shorter filter or podSelector", bytes, maxBytes)}
}
