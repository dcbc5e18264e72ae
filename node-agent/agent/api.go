// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/node-agent/pods"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// requestTimeout bounds a request to the API server, because the loop does nothing else until it ends.
const requestTimeout = 5 * time.Second

// Scheme has the kinds that an agent reads and writes.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := v1.AddToScheme(s); err != nil {
		return nil, err
	}
	return s, errors.Join(corev1.AddToScheme(s), coordinationv1.AddToScheme(s))
}

// resources maps the kinds of Scheme that an agent uses. They are built in and not discovered, so that an agent can
// start without an API server.
func resources() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	nodeCaptures := v1.GroupVersion.WithResource("nodecaptures")
	m.AddSpecific(v1.GroupVersion.WithKind("NodeCapture"), nodeCaptures, v1.GroupVersion.WithResource("nodecapture"), meta.RESTScopeRoot)
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	m.AddSpecific(corev1.SchemeGroupVersion.WithKind("Pod"), pods, corev1.SchemeGroupVersion.WithResource("pod"), meta.RESTScopeNamespace)
	namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
	m.AddSpecific(corev1.SchemeGroupVersion.WithKind("Namespace"), namespaces, corev1.SchemeGroupVersion.WithResource("namespace"), meta.RESTScopeRoot)
	leases := coordinationv1.SchemeGroupVersion.WithResource("leases")
	m.AddSpecific(coordinationv1.SchemeGroupVersion.WithKind("Lease"), leases, coordinationv1.SchemeGroupVersion.WithResource("lease"), meta.RESTScopeNamespace)
	return m
}

// newClient makes a client without a cache. It sends no request itself.
func newClient(config *rest.Config) (client.Client, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: resources()})
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server %s: %w", config.Host, err)
	}
	return c, nil
}

// podUIDs looks pods up in the API.
type podUIDs struct{ client client.Reader }

// mirrorAnnotation of a static pod's mirror has the UID by which the kubelet knows the pod.
const mirrorAnnotation = "kubernetes.io/config.mirror"

// staticForm matches a UID that the kubelet makes, which is a checksum. The API server's UIDs have dashes.
var staticForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// mirrored returns the UID of the static pod that a pod is the mirror of; empty for none. A user who may make pods
// may write any annotation, so it must not name the UID of another user's pod.
func mirrored(pod *corev1.Pod) string {
	if uid := pod.Annotations[mirrorAnnotation]; staticForm.MatchString(uid) {
		return uid
	}
	return ""
}

// PodUIDs implements pods.UIDs.
func (p podUIDs) PodUIDs(ctx context.Context, pod pods.Pod) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var found corev1.Pod
	err := p.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: pod.Name}, &found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return uidsOf(&found), nil
}

func uidsOf(pod *corev1.Pod) []string {
	uids := []string{string(pod.UID)}
	if mirror := mirrored(pod); mirror != "" {
		uids = append(uids, mirror)
	}
	return uids
}

// NodePods lists a node's pods with the queues that they request. latest asks for the latest list; otherwise the API
// server may answer from its cache.
func (p podUIDs) NodePods(ctx context.Context, node string, latest bool) ([]pods.NodePod, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var list corev1.PodList
	options := &client.ListOptions{Raw: &metav1.ListOptions{}}
	if !latest {
		options.Raw.ResourceVersion = "0"
	}
	if err := p.client.List(ctx, &list, options, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	var all []pods.NodePod
	for i := range list.Items {
		all = append(all, nodePod(&list.Items[i]))
	}
	return all, nil
}

func nodePod(pod *corev1.Pod) pods.NodePod {
	out := pods.NodePod{
		Pod: pods.Pod{Namespace: pod.Namespace, Name: pod.Name}, UIDs: uidsOf(pod),
		Ended:  pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Queues: map[string]int{},
	}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for name, quantity := range container.Resources.Limits {
			if set, ours := strings.CutPrefix(string(name), v1.ResourcePrefix); ours {
				out.Queues[set] += int(quantity.Value())
			}
		}
	}
	return out
}
