// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// RingName is the name of the CaptureRing with this number in a namespace, at most 45 characters. The number of names is small,
// because a kubelet never forgets the name of a resource. Each name belongs to one namespace, so pods that still request a name
// after it was freed block nobody else.
func RingName(namespace string, number int) string {
	const maxLength = 20
	text := namespace[:min(len(namespace), maxLength)]
	return fmt.Sprintf("pods-%s-%.5x-%d", strings.TrimRight(text, "-"), sha256.Sum256([]byte(namespace)), number)
}

// NamespaceOf returns the namespace of the PodCapture that the operator made the ring for, empty for any other ring. The label
// alone is not enough: users may copy it with a ring.
func NamespaceOf(ring metav1.Object) string {
	namespace, name := ring.GetLabels()[v1alpha1.LabelPodCaptureNamespace], ring.GetName()
	number, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if namespace == "" || err != nil || name != RingName(namespace, number) {
		return ""
	}
	return namespace
}
