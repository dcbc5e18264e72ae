// SPDX-License-Identifier: Apache-2.0

package podcapture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

// decision is the result for one PodCapture.
type decision struct {
	capture *v1alpha1.PodCapture
	// ring is the name of its CaptureRing, empty for none.
	ring string
	// want is the desired ring, nil if the ring is not changed.
	want *v1alpha1.CaptureRing
	// refused is nil for a PodCapture that is served.
	refused *refusal
}

// rings by their names.
type rings map[string]*v1alpha1.CaptureRing

// decide assigns a ring to each PodCapture, the oldest first. One that is being deleted gets none.
func decide(captures []v1alpha1.PodCapture, there rings, limits Limits) []decision {
	captures = slices.Clone(captures)
	slices.SortFunc(captures, func(a, b v1alpha1.PodCapture) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	served, given := map[string]int{}, map[string]bool{}
	total := 0
	var decisions []decision
	for i := range captures {
		capture := &captures[i]
		if capture.DeletionTimestamp != nil {
			continue
		}
		d := decision{capture: capture}
		switch {
		case limits.PerNamespace == 0:
			d.refused = &refusal{v1alpha1.ReasonDisabled,
				"PodCaptures are switched off in this cluster: ask its administrator (podCapture.maxPerNamespace of the chart)"}
		case served[capture.Namespace] >= limits.PerNamespace:
			d.refused = &refusal{v1alpha1.ReasonLimitExceeded, fmt.Sprintf(
				"there are %d older PodCaptures in this namespace, the maximum: delete one, or ask the cluster's administrator "+
					"(podCapture.maxPerNamespace of the chart)", limits.PerNamespace)}
		case total >= maxRings:
			d.refused = &refusal{v1alpha1.ReasonLimitExceeded, fmt.Sprintf(
				"there are %d older PodCaptures in the cluster, the maximum: wait until one is deleted", maxRings)}
		default:
			served[capture.Namespace]++
			total++
			d.serve(there, given, limits)
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// serve sets the ring's name and the desired ring. If the spec is refused, the ring is not changed.
func (d *decision) serve(there rings, given map[string]bool, limits Limits) {
	if d.ring, d.refused = there.nameFor(d.capture, given, limits.PerNamespace); d.refused != nil {
		return
	}
	want := Ring(d.capture, d.ring, limits.Memory)
	if d.refused = leftOut(d.capture); d.refused == nil {
		d.refused = limits.exceeds(&want.Spec)
	}
	if d.refused == nil {
		given[d.ring], d.want = true, want
		return
	}
	if there[d.ring] == nil {
		d.ring = ""
		return
	}
	given[d.ring] = true
	d.refused.message += "; until then it stays as it was before the change"
}

// nameFor returns the name of the PodCapture's present ring, else of its last one, else the first free name.
func (r rings) nameFor(capture *v1alpha1.PodCapture, given map[string]bool, numbers int) (string, *refusal) {
	predecessor := ""
	for _, name := range slices.Sorted(maps.Keys(r)) {
		switch ring := r[name]; {
		case plan.NamespaceOf(ring) != capture.Namespace || given[name]:
		case ring.Labels[v1alpha1.LabelPodCaptureUID] == string(capture.UID):
			return name, nil
		case ring.Annotations[v1alpha1.AnnotationPodCapture] == capture.Name:
			predecessor = name
		}
	}
	if predecessor != "" {
		return "", &refusal{v1alpha1.ReasonPending, fmt.Sprintf(
			"CaptureRing %s, of the PodCapture that had this name before, is being removed", predecessor)}
	}
	first, conflict := "", ""
	for number := range numbers {
		name := plan.RingName(capture.Namespace, number)
		switch {
		case r[name] != nil && plan.NamespaceOf(r[name]) != capture.Namespace:
			conflict = cmp.Or(conflict, name)
		case r[name] != nil || given[name]:
		case v1alpha1.ResourcePrefix+name == capture.Status.Resource:
			return name, nil
		default:
			first = cmp.Or(first, name)
		}
	}
	switch {
	case first != "":
		return first, nil
	case conflict != "":
		return "", &refusal{v1alpha1.ReasonNameConflict, fmt.Sprintf(
			"the name %s is taken by a CaptureRing that is not of a PodCapture of this namespace: ask the cluster's administrator to delete it", conflict)}
	}
	return "", &refusal{v1alpha1.ReasonPending, "the CaptureRings of PodCaptures that were here before are being removed"}
}
