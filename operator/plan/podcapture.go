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

// RingName is the name of the CaptureRing with this number in a namespace, at most 45 characters. There are few of them, because a kubelet
// never forgets the name of a resource; and each is of one namespace, so that pods which go on requesting one that was given back
// are in nobody else's way.
func RingName(namespace string, number int) string {
	const most = 20
	text := namespace[:min(len(namespace), most)]
	return fmt.Sprintf("pods-%s-%.5x-%d", strings.TrimRight(text, "-"), sha256.Sum256([]byte(namespace)), number)
}

// NamespaceOf is the namespace of the PodCapture that the operator made a ring for, empty for a ring that somebody else made. A label
// alone says nothing: who copies a ring may copy it, too.
func NamespaceOf(ring metav1.Object) string {
	namespace, name := ring.GetLabels()[v1alpha1.LabelPodCaptureNamespace], ring.GetName()
	number, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if namespace == "" || err != nil || name != RingName(namespace, number) {
		return ""
	}
	return namespace
}
