// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Pod is a pod of this node.
type Pod struct {
	Namespace, Name string
	// Labels of the pod and of its namespace.
	Labels, NamespaceLabels map[string]string
	// HostNetwork means that the pod has the node's interfaces and none of its own.
	HostNetwork bool
	// Interfaces holds the indexes of the node's side of its own interfaces. It is empty while the pod starts.
	Interfaces []int
	// Problem is why there are none although there should be by now.
	Problem string
}

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// nameLabel is the label that Kubernetes gives every namespace. Selectors of pods can use it, too.
const nameLabel = "kubernetes.io/metadata.name"

// podSelectors parses a selector's two label selectors. The error names the field.
func podSelectors(s v1.InterfaceSelector) (pods, namespaces labels.Selector, err error) {
	if pods, err = metav1.LabelSelectorAsSelector(s.PodSelector); err != nil {
		return nil, nil, fmt.Errorf("podSelector: %w", err)
	}
	namespaces = labels.Everything()
	if s.NamespaceSelector != nil {
		if namespaces, err = metav1.LabelSelectorAsSelector(s.NamespaceSelector); err != nil {
			return nil, nil, fmt.Errorf("namespaceSelector: %w", err)
		}
	}
	return pods, namespaces, nil
}

func withName(own map[string]string, name string) labels.Set {
	all := labels.Set{}
	maps.Copy(all, own)
	all[nameLabel] = name
	return all
}

// podsCanBeTapped refuses settings that need a fixed interface.
func podsCanBeTapped(d *ringDraft) *problem {
	if !slices.ContainsFunc(d.spec.Interfaces, func(s v1.InterfaceSelector) bool { return s.PodSelector != nil }) {
		return nil
	}
	switch {
	case d.facts.NoPods:
		return problemf(v1.ReasonUnsupported, "spec.interfaces[].podSelector: a machine without Kubernetes has no pods: give the name of an interface")
	case d.spec.Mode() != v1.TransparentModeStack:
		return problemf(v1.ReasonUnsupported, "spec.transparentMode %d: the interfaces of pods are captured in mode 0", d.spec.Mode())
	}
	return nil
}

// tapPods finds the taps of a selector of pods. Finding none is no problem, because pods may come later.
func (d *ringDraft) tapPods(i int, selector v1.InterfaceSelector, queues []uint16) *problem {
	if d.facts.PodsUnknown != "" {
		d.keepTaps()
		d.untapped = append(d.untapped, untapped{message: d.facts.PodsUnknown, wrong: true})
		return nil
	}
	pods, err := d.facts.selectedPods(selector)
	if err != nil {
		return problemf(v1.ReasonUnsupported, "spec.interfaces[%d].%v", i, err)
	}
	for _, pod := range pods {
		if problem := d.tapPod(i, selector.Name, pod, queues); problem != nil {
			return problem
		}
	}
	return nil
}

// selectedPods returns the pods that a selector selects.
func (f *Facts) selectedPods(selector v1.InterfaceSelector) ([]Pod, error) {
	pods, namespaces, err := podSelectors(selector)
	if err != nil {
		return nil, err
	}
	var selected []Pod
	for _, pod := range f.Pods {
		if pods.Matches(withName(pod.Labels, pod.Name)) && namespaces.Matches(withName(pod.NamespaceLabels, pod.Namespace)) {
			selected = append(selected, pod)
		}
	}
	return selected, nil
}

// interfacesOf returns a pod's interfaces. If there are several, it returns only those with names that match the
// glob. A pod in the node's network has none.
func (f *Facts) interfacesOf(pod Pod, glob string) ([]Interface, error) {
	if pod.HostNetwork {
		return nil, nil
	}
	var found []Interface
	for _, match := range f.Interfaces {
		if !slices.Contains(pod.Interfaces, match.Index) {
			continue
		}
		if glob != "" {
			if ok, err := selects(v1.InterfaceSelector{Name: glob}, match); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
		}
		found = append(found, match)
	}
	return found, nil
}

// podInterfaces returns the interfaces that a selector of pods selects. An invalid selector is the ring's problem,
// and finds nothing.
func (f *Facts) podInterfaces(selector v1.InterfaceSelector) []Interface {
	pods, err := f.selectedPods(selector)
	if err != nil {
		return nil
	}
	var found []Interface
	for _, pod := range pods {
		interfaces, _ := f.interfacesOf(pod, selector.Name)
		found = append(found, interfaces...)
	}
	return found
}

func (d *ringDraft) tapPod(i int, glob string, pod Pod, queues []uint16) *problem {
	switch {
	case pod.HostNetwork:
		d.untapped = append(d.untapped, untapped{pod: pod.String(), message: "hostNetwork: it has no interface of its own"})
	case pod.Problem != "":
		d.untapped = append(d.untapped, untapped{pod: pod.String(), message: pod.Problem, wrong: true})
	}
	interfaces, err := d.facts.interfacesOf(pod, glob)
	if err != nil {
		return problemf(v1.ReasonInterfaceNotFound, "spec.interfaces[%d].%v", i, err)
	}
	for _, match := range interfaces {
		if problem := d.tap(i, match, queues); problem != nil {
			return problem
		}
		d.setPod(match.Name, pod.String())
	}
	return nil
}

// keepTaps keeps the existing taps, except those of pools, while the desired taps are not known.
func (d *ringDraft) keepTaps() {
	for _, tap := range d.facts.Taps[d.name] {
		there := slices.IndexFunc(d.facts.Interfaces, func(i Interface) bool { return i.Index == tap.Index })
		if there >= 0 && !tap.Follows && !slices.ContainsFunc(d.taps, func(t capture.Tap) bool { return t.Index == tap.Index }) {
			tap.Interface, tap.Direction = d.facts.Interfaces[there].Name, directions[d.spec.Direction]
			d.taps = append(d.taps, tap)
		}
	}
}

// cutPods removes pods' interfaces that exceed a ring's limit, the newest first. So those that stay lose nothing.
func (d *ringDraft) cutPods() {
	for at := len(d.taps) - 1; at >= 0 && len(d.taps) > maxTaps; at-- {
		name := d.taps[at].Interface
		if pod, ok := d.pods[name]; ok && !d.taps[at].Follows {
			delete(d.pods, name)
			d.taps = slices.Delete(d.taps, at, at+1)
			d.untapped = append(d.untapped, untapped{pod: pod, wrong: true, message: fmt.Sprintf(
				"the ring has %d interfaces on this node, the most it can: select fewer pods, and the others in a second ring", maxTaps)})
		}
	}
}

// untapped is an interface or pod that a podSelector or a pool selects, but that the ring cannot tap.
type untapped struct {
	// pool means that it is of a pool.
	pool bool
	// pod is empty for all of them.
	pod, message string
	// wrong means that the ring is therefore not as its spec asks.
	wrong bool
}

func (u untapped) String() string {
	if u.pod == "" {
		return u.message
	}
	return u.pod + ": " + u.message
}

// notTapped returns the untapped pods for the verdict, and the problem that they are for the ring.
func (d *ringDraft) notTapped() (texts []string, wrong *problem) {
	const limit = 16
	for _, u := range d.untapped {
		if u.wrong && wrong == nil {
			field := "podSelector"
			if u.pool {
				field = "resourceName"
			}
			wrong = problemf(v1.ReasonPodNotTapped, "spec.interfaces[].%s: %s", field, u)
		}
		if text := u.String(); len(texts) < limit && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts, wrong
}

// ByName reports whether a selector of namespaces, if there is one, selects only by name.
func ByName(s *metav1.LabelSelector) bool {
	if s == nil {
		return true
	}
	for label := range s.MatchLabels {
		if label != nameLabel {
			return false
		}
	}
	return !slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key != nameLabel })
}
