// SPDX-License-Identifier: Apache-2.0

package podcapture

import (
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// specBytes is an annotation that a PodCapture has in the cache alone: the size of a spec that was left out.
const specBytes = "ringcap.io/spec-bytes"

// Trim makes a PodCapture that comes into the cache take a few KiB, whatever is in it: those who may edit a namespace can make hundreds
// of a MiB each, and the operator works for others too. A spec for which no ring is made is left out.
func Trim(object any) (any, error) {
	capture, ok := object.(*v1alpha1.PodCapture)
	// The cache may ask again about what it has. The API server has none without a queue: such a spec was left out.
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

// leftOut refuses a PodCapture whose spec Trim left out. The ring's is not smaller.
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
