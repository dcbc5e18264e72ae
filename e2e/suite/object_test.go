// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// apply makes or changes an object of the suite's own, of which the manifest is all that the case says. It is removed when the case
// ends, after what was made later.
func (c *Case) apply(manifest string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	require.NoError(c, yaml.UnmarshalStrict([]byte(manifest), &object.Object), manifest)
	require.NoError(c, c.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
		client.FieldOwner("suite"), client.ForceOwnership), manifest)
	if key := nameOf(object); !c.mine[key] {
		c.mine[key] = true
		c.Cleanup(func() { c.remove(object) })
	}
	return object
}

// rejected expects the API server to refuse an object in words like the pattern.
func (c *Case) rejected(manifest, pattern string) {
	err := c.try(func() { c.apply(manifest) })
	require.Error(c, err, "the API server took %s", manifest)
	require.Regexp(c, pattern, err.Error())
}

// ring and cluster make or change an object of ringcap.
func (c *Case) ring(name, spec string) *unstructured.Unstructured {
	return c.apply(manifest("CaptureRing", name, spec))
}

func (c *Case) cluster(name, spec string) *unstructured.Unstructured {
	return c.apply(manifest("Cluster", name, spec))
}

// readyRing and readyCluster wait until they are ready.
func (c *Case) readyRing(name, spec string) *unstructured.Unstructured {
	object := c.ring(name, spec)
	c.ringIs(name, "Ready", "True")
	return object
}

func (c *Case) readyCluster(name, spec string) *unstructured.Unstructured {
	object := c.cluster(name, spec)
	c.clusterIs(name, "Ready", "True")
	return object
}

func manifest(kind, name, spec string) string {
	return fmt.Sprintf("{apiVersion: ringcap.io/v1alpha1, kind: %s, metadata: {name: %s, labels: {ringcap.local/suite: case}}, spec: %s}", kind, name, spec)
}

// remove deletes an object and waits until it is gone, and the pods of a workload too, which may hold queues.
func (c *Case) remove(object *unstructured.Unstructured) {
	how := client.PropagationPolicy("Background")
	if kind := object.GetKind(); kind == "DaemonSet" || kind == "Deployment" {
		how = "Foreground"
	}
	err := c.Delete(context.Background(), object, how)
	if meta.IsNoMatchError(err) {
		return // its kind is gone
	}
	require.NoError(c, client.IgnoreNotFound(err))
	c.isGone(180, object)
}

// nameOf is an object's kind, namespace and name.
func nameOf(object *unstructured.Unstructured) string {
	return fmt.Sprint(object.GetKind(), " ", client.ObjectKeyFromObject(object))
}

// kinds are what cases make, in the order in which they can be removed.
var kinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("PodCapture"),
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
	corev1.SchemeGroupVersion.WithKind("Pod"),
	v1alpha1.GroupVersion.WithKind("Cluster"),
	v1alpha1.GroupVersion.WithKind("CaptureRing"),
	corev1.SchemeGroupVersion.WithKind("Namespace"),
}

// objects are all objects of these kinds, but those that a controller makes.
func (c *Case) objects() (objects []*unstructured.Unstructured) {
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := c.List(context.Background(), list)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // its kind is gone
		}
		require.NoError(c, err)
		for i := range list.Items {
			if metav1.GetControllerOf(&list.Items[i]) == nil {
				objects = append(objects, &list.Items[i])
			}
		}
	}
	return objects
}

// tidy removes what was not there before the first case: one that failed may have made what it would have removed later. If none has
// failed, this one does.
func (c *Case) tidy() {
	say := c.Errorf
	if c.failed.Swap(false) {
		say = c.Logf
	}
	for _, object := range c.objects() {
		if c.found[nameOf(object)] {
			continue
		}
		if object.GetDeletionTimestamp() == nil {
			say("left behind: %s", nameOf(object))
		}
		if err := c.try(func() { c.remove(object) }); err != nil {
			c.Errorf("%s cannot be removed: %v", nameOf(object), err)
		}
	}
}

// isGone waits until an object is not there.
func (c *Case) isGone(seconds int, object client.Object) {
	c.until(seconds, fmt.Sprintf("%T %s is gone", object, object.GetName()), func() {
		err := c.Get(context.Background(), client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
		require.True(c, apierrors.IsNotFound(err), "%v", err)
	})
}

// applyFile applies a manifest of several objects. They are removed when the case ends, with options of kubectl's.
func (c *Case) applyFile(path string, removal ...string) {
	c.Cleanup(func() { c.removeFile(path, removal...) })
	c.run("kubectl", "apply", "-f", path)
}

func (c *Case) removeFile(path string, options ...string) {
	c.run(append([]string{"kubectl", "delete", "--ignore-not-found", "--timeout=3m", "-f", path}, options...)...)
}

// get is an object of the cluster.
func get[T any, P interface {
	*T
	client.Object
}](c *Case, namespace, name string) P {
	object := P(new(T))
	require.NoError(c, c.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, object))
	return object
}

// list fills a list.
func (c *Case) list(list client.ObjectList, options ...client.ListOption) {
	require.NoError(c, c.List(context.Background(), list, options...))
}

// ringIs and clusterIs wait for a condition, by the spec as it is, whose "STATUS REASON MESSAGE" begins like the pattern.
func (c *Case) ringIs(name, condition, pattern string) {
	c.condition("CaptureRing", name, condition, pattern)
}

func (c *Case) clusterIs(name, condition, pattern string) {
	c.condition("Cluster", name, condition, pattern)
}

func (c *Case) condition(kind, name, condition, pattern string) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	c.until(60, kind+" "+name, func() {
		require.NoError(c, c.Get(context.Background(), client.ObjectKey{Name: name}, object))
		is := ""
		list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, item := range list {
			if of := item.(map[string]any); of["type"] == condition && of["observedGeneration"] == object.GetGeneration() {
				is = fmt.Sprint(of["status"], " ", of["reason"], " ", of["message"])
			}
		}
		c.Logf("%s %s %s: %s", kind, name, condition, is)
		require.Regexp(c, "^(?:"+pattern+")", is)
	})
}

// nodeCapture is what a node has reported last; counters may be minutes old.
func (c *Case) nodeCapture(node string) *v1alpha1.NodeCapture {
	return get[v1alpha1.NodeCapture](c, "", node)
}

// ringOf and queuesOf are what a node has reported of a ring and of the queues of one name, empty when it has not.
func ringOf(node *v1alpha1.NodeCapture, name string) v1alpha1.NodeRingStatus {
	for _, ring := range node.Status.Rings {
		if ring.Name == name {
			return ring
		}
	}
	return v1alpha1.NodeRingStatus{}
}

func queuesOf(node *v1alpha1.NodeCapture, name string) []v1alpha1.QueueStatus {
	for _, cluster := range node.Status.Clusters {
		if cluster.Name == name {
			return cluster.Queues
		}
	}
	return nil
}

// attached waits until nodes have queues of one name, each read or not as wanted.
func (c *Case) attached(seconds int, name string, want []bool, nodes ...string) {
	for _, node := range nodes {
		c.until(seconds, node+": readers of "+name, func() {
			var is []bool
			for _, queue := range queuesOf(c.nodeCapture(node), name) {
				is = append(is, queue.Attached)
			}
			require.Equal(c, want, is)
		})
	}
}

// podsOf are the pods of a namespace with a label ("NAME=VALUE"; all without).
func (c *Case) podsOf(namespace, label string) []corev1.Pod {
	selector, err := labels.Parse(label)
	require.NoError(c, err)
	var list corev1.PodList
	c.list(&list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	return list.Items
}

// podOn is the first such pod on a node, or on any for "", that is not being deleted.
func (c *Case) podOn(node, namespace, label string) *corev1.Pod {
	for _, pod := range c.podsOf(namespace, label) {
		if (node == "" || pod.Spec.NodeName == node) && pod.DeletionTimestamp == nil {
			return &pod
		}
	}
	require.FailNow(c, "no pod", "%s has none of %s with %s", node, namespace, label)
	return nil
}

// agents is the label of the agents' pods.
const agents = "app.kubernetes.io/component=agent"

func (c *Case) addressOf(node string) string {
	return c.podOn(node, system, agents).Status.HostIP
}

// offered is how many pieces of a resource a node's kubelet offers; "" where it does not know the name.
func (c *Case) offered(node, resource string) string {
	if quantity, ok := get[corev1.Node](c, "", node).Status.Allocatable[corev1.ResourceName(resource)]; ok {
		return quantity.String()
	}
	return ""
}

// rolledOut waits until all pods of a DaemonSet or Deployment are ready and of its present template.
func (c *Case) rolledOut(seconds int, kind, namespace, name string) {
	c.run("kubectl", "-n", namespace, "rollout", "status", kind, name, fmt.Sprintf("--timeout=%ds", seconds))
}

// revision is the cluster's present one: what changes later has a higher.
func (c *Case) revision() int {
	var list eventsv1.EventList
	c.list(&list, client.Limit(1))
	return c.number(list.ResourceVersion)
}

// events are the texts of a namespace's Events since the case began, "KIND/NAME REASON: NOTE (RELATED)".
func (c *Case) events(namespace string) (texts []string) {
	var list eventsv1.EventList
	c.list(&list, client.InNamespace(namespace))
	for _, event := range list.Items {
		if c.number(event.ResourceVersion) > c.began {
			of := cmp.Or(event.Related, &corev1.ObjectReference{})
			texts = append(texts, fmt.Sprintf("%s/%s %s: %s (%s)", event.Regarding.Kind, event.Regarding.Name, event.Reason, event.Note, of.Name))
		}
	}
	return texts
}

// told waits until Events of so many objects match the pattern; see events.
func (c *Case) told(seconds int, namespace string, objects int, pattern string) {
	like := regexp.MustCompile("(?s)^" + pattern)
	c.until(seconds, "Events like '"+pattern+"'", func() {
		about, all := map[string]bool{}, c.events(namespace)
		for _, text := range all {
			if like.MatchString(text) {
				about[strings.Fields(text)[0]] = true
			}
		}
		require.Len(c, about, objects, "among:\n%s", strings.Join(all, "\n"))
	})
}
