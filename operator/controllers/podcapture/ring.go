// SPDX-License-Identifier: Apache-2.0

package podcapture

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/operator/api/sizing"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Limits are set by the cluster's administrator.
type Limits struct {
	// PerNamespace is the maximum number of PodCaptures in a namespace, 0 for none.
	PerNamespace int
	// Memory, bytes, is the maximum for the queues of one PodCapture on each node.
	Memory int64
}

const (
	// maxRings leaves half of the CaptureRings of a node to users who may write CaptureRings,
	maxRings = v1alpha1.MaxRings / 2
	// and maxBytes, with maxRings of them, half of the space in a NodeCapture.
	maxBytes = 4 << 10
	// maxExpression, bytes, compiles in less than a second: an expression of four times the size takes more than ten, and blocks
	// the plans for all rings.
	maxExpression = 512
)

// Ring returns the CaptureRing of a PodCapture: it captures only pods of its namespace, for consumers only there.
func Ring(capture *v1alpha1.PodCapture, name string, memory int64) *v1alpha1.CaptureRing {
	promiscuous, spec := false, capture.Spec.DeepCopy()
	ring := &v1alpha1.CaptureRing{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				v1alpha1.LabelPodCaptureNamespace: capture.Namespace, v1alpha1.LabelPodCaptureUID: string(capture.UID),
			},
			Annotations: map[string]string{v1alpha1.AnnotationPodCapture: capture.Name},
		},
		Spec: v1alpha1.CaptureRingSpec{
			Interfaces: []v1alpha1.InterfaceSelector{{
				PodSelector: &spec.PodSelector,
				// Kubernetes sets this label on each namespace, and agents use the namespace's name for it.
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": capture.Namespace}},
			}},
			Direction: v1alpha1.DirectionBoth, Queues: v1alpha1.Queues(spec.Queues), SnapLength: spec.SnapLength,
			Filter: spec.Filter, Sampling: spec.Sampling,
			NIC: v1alpha1.NIC{Offloads: v1alpha1.OffloadsKeep, Promiscuous: &promiscuous},
			QueueSettings: v1alpha1.QueueSettings{
				Slots: spec.Slots, MemoryLimit: resource.NewQuantity(memory, resource.BinarySI),
				Consumers: &v1alpha1.Consumers{Namespaces: []string{capture.Namespace}, InjectLibpcap: spec.InjectLibpcap},
			},
		},
	}
	ring.Spec.Default()
	return ring
}

// refusal is why a PodCapture is refused.
type refusal struct{ reason, message string }

// exceeds returns which limit the ring's spec exceeds, or that its podSelector is invalid, which every node would refuse. It
// computes the memory for the engine that needs more, so that no node refuses the ring.
func (l Limits) exceeds(spec *v1alpha1.CaptureRingSpec) *refusal {
	if _, err := metav1.LabelSelectorAsSelector(spec.Interfaces[0].PodSelector); err != nil {
		return &refusal{v1alpha1.ReasonUnsupported, fmt.Sprintf("spec.podSelector: %v", err)}
	}
	queues := v1alpha1.QueueCount(spec.Queues)
	slotBytes := sizing.SlotBytes(spec.SnapLength)
	area := sizing.Area(spec.Slots, slotBytes, sizing.EBPFSlot)
	if sizing.Lanes(queues, area, 1, &l.Memory) == 0 {
		return &refusal{v1alpha1.ReasonMemoryLimitExceeded, fmt.Sprintf(
			"spec: %d queues of %d slots of %d bytes need %d KiB on each node, and a PodCapture may have %d KiB: "+
				"lower queues, slots or snapLength, or ask the cluster's administrator (podCapture.maxMemory of the chart)",
			queues, spec.Slots, slotBytes, uint64(queues)*area>>10, l.Memory>>10)}
	}
	if spec.Filter != nil && len(spec.Filter.BPF) > maxExpression {
		return &refusal{v1alpha1.ReasonLimitExceeded, fmt.Sprintf(
			"spec.filter.bpf has %d bytes, and a PodCapture's may have %d: write a shorter one, or spec.filter.rules", len(spec.Filter.BPF), maxExpression)}
	}
	// A spec was decoded from JSON: encoding it cannot fail.
	if text, _ := json.Marshal(spec); len(text) > maxBytes {
		return tooLong(strconv.Itoa(len(text)))
	}
	return nil
}
