// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/capture"
	"github.com/ringcap/ringcap/cli/fleet"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// nameLabel selects a pod by its name in a podSelector, and a namespace in a namespaceSelector.
const nameLabel = "kubernetes.io/metadata.name"

// workload is one pod or the pods of one Deployment, with interfaces of their own.
type workload struct {
	what     string
	selector metav1.LabelSelector
	list     []client.ListOption
	// name of the pod, empty for a Deployment.
	name string
}

// findWorkload looks up pod/NAME or deploy/NAME in the user's namespace.
func findWorkload(ctx context.Context, c *connection, target string) (workload, error) {
	kind, name, _ := strings.Cut(target, "/")
	w := workload{what: fmt.Sprintf("%s/%s in namespace %s", kind, name, c.namespace), list: []client.ListOption{client.InNamespace(c.namespace)}}
	key := client.ObjectKey{Namespace: c.namespace, Name: name}
	switch kind {
	case "pod", "pods", "po":
		if err := c.Get(ctx, key, &corev1.Pod{}); err != nil {
			return w, fmt.Errorf("look up %s: %w", w.what, err)
		}
		w.name = name
		w.selector.MatchLabels = map[string]string{nameLabel: name}
		return w, nil
	case "deploy", "deployment", "deployments":
		var deployment appsv1.Deployment
		if err := c.Get(ctx, key, &deployment); err != nil {
			return w, fmt.Errorf("look up %s: %w", w.what, err)
		}
		if deployment.Spec.Selector != nil {
			w.selector = *deployment.Spec.Selector
		}
		selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
		if err != nil {
			return w, fmt.Errorf("%s: spec.selector: %w", w.what, err)
		}
		w.list = append(w.list, client.MatchingLabelsSelector{Selector: selector})
		return w, nil
	}
	return w, usagef("%q is neither a ring nor pod/NAME nor deploy/NAME", target)
}

// nodes returns the number of the workload's pods on each node; untapped lists pods that have no interface of their own.
func (w workload) nodes(ctx context.Context, c *connection) (nodes map[string]int, untapped []string, err error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, w.list...); err != nil {
		return nil, nil, fmt.Errorf("list the pods of %s: %w", w.what, err)
	}
	nodes = map[string]int{}
	for _, pod := range pods.Items {
		switch {
		case w.name != "" && pod.Name != w.name, pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		case pod.Spec.HostNetwork:
			untapped = append(untapped, fmt.Sprintf("pod %s has the network of its node %s: capture a ring over that, with -f", pod.Name, pod.Spec.NodeName))
		default:
			nodes[pod.Spec.NodeName]++
		}
	}
	return nodes, untapped, nil
}

// ring returns a ring over the pods' interfaces, in both directions. It does not change NICs.
func (w workload) ring(ctx context.Context, c *connection, nodes []string, f captureFlags) *v1.CaptureRingSpec {
	no := false
	spec := &v1.CaptureRingSpec{
		Interfaces: []v1.InterfaceSelector{{
			PodSelector:       &w.selector,
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{nameLabel: c.namespace}},
		}},
		Direction: v1.DirectionBoth, SnapLength: f.snapLength, NIC: v1.NIC{Offloads: v1.OffloadsKeep, Promiscuous: &no},
	}
	if f.filter != "" {
		spec.Filter = &v1.Filter{BPF: f.filter}
	}
	spec.NodeSelector = selectNodes(ctx, c, nodes)
	return spec
}

// selectNodes selects the nodes by their hostnames. If these are unknown or too many, it selects all: the ring captures nothing
// on nodes without pods of the workload.
func selectNodes(ctx context.Context, c *connection, nodes []string) *v1.NodeSelector {
	var hostnames []string
	for _, name := range nodes {
		var node corev1.Node
		if len(nodes) > v1.MaxSelectorValues || c.Get(ctx, client.ObjectKey{Name: name}, &node) != nil || node.Labels[corev1.LabelHostname] == "" {
			return nil
		}
		hostnames = append(hostnames, node.Labels[corev1.LabelHostname])
	}
	return v1.NodesWith(corev1.LabelHostname, hostnames...)
}

// own returns a PodCapture of the pods.
func (w workload) own(f captureFlags) *v1.PodCaptureSpec {
	spec := &v1.PodCaptureSpec{PodSelector: w.selector, Slots: f.slots, SnapLength: f.snapLength}
	if f.filter != "" {
		spec.Filter = &v1.Filter{BPF: f.filter}
	}
	return spec
}

// onlyOwn reports whether the user may create PodCaptures in the namespace, and no CaptureRings.
func onlyOwn(ctx context.Context, c *connection) bool {
	may := func(resource, namespace string) bool {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "create", Group: v1.GroupVersion.Group, Resource: resource, Namespace: namespace,
			},
		}}
		return c.Create(ctx, review) == nil && review.Status.Allowed
	}
	return !may("capturerings", "") && may("podcaptures", c.namespace)
}

// plan decides where to capture a workload. Without a snapshot it uses a PodCapture: the user may not read the nodes' status.
func (w workload) plan(ctx context.Context, c *connection, s *fleet.Snapshot, f captureFlags) (plan capture.Plan, missing []string, err error) {
	nodes, missing, err := w.nodes(ctx, c)
	if err != nil {
		return plan, nil, err
	}
	for _, want := range f.nodes {
		if nodes[want] == 0 {
			return plan, nil, fmt.Errorf("--node: no pod of %s runs on a node %s", w.what, want)
		}
	}
	id := rand.String(5)
	plan = newPlan(c, f, id)
	var captured []string
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		plan.Pods += int32(nodes[name])
		if len(f.nodes) > 0 && !slices.Contains(f.nodes, name) {
			continue
		}
		if why := silenceOf(s, name); why != "" {
			missing = append(missing, "node "+name+": "+why)
			continue
		}
		plan.Nodes = append(plan.Nodes, capture.Node{Name: name, Interfaces: []string{w.what}})
		captured = append(captured, name)
	}
	if len(plan.Nodes) == 0 {
		return plan, nil, fmt.Errorf("%s can be captured nowhere: %s", w.what, strings.Join(append(missing, "none of its pods runs with an interface of its own on a node of ringcap"), "; "))
	}
	if s == nil {
		plan.Own = w.own(f)
	} else {
		plan.Ring, plan.Made = "ringcap-cli-"+id+"-pods", w.ring(ctx, c, captured, f)
	}
	return finishPlan(ctx, c, plan, missing)
}

// silenceOf returns why a node cannot capture, empty if it can or if its state is unknown.
func silenceOf(s *fleet.Snapshot, node string) string {
	if s == nil {
		return ""
	}
	i := slices.IndexFunc(s.Nodes, func(n v1.NodeCapture) bool { return n.Name == node })
	if i < 0 {
		return "no agent of ringcap runs there"
	}
	return s.Silence(&s.Nodes[i])
}

// strays returns an error that names the nodes to which pods of the workload moved during the capture, and on which they were
// not captured.
func (w workload) strays(ctx context.Context, c *connection, plan capture.Plan, f captureFlags) error {
	nodes, _, err := w.nodes(ctx, c)
	if err != nil {
		return err
	}
	var found []string
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		captured := slices.ContainsFunc(plan.Nodes, func(n capture.Node) bool { return n.Name == node })
		if !captured && (len(f.nodes) == 0 || slices.Contains(f.nodes, node)) {
			found = append(found, node)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return errors.New("pods of it ran on other nodes in the end, and were not captured there: " + strings.Join(found, ", "))
}
