// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/node-agent/pods"
	"github.com/ringcap/ringcap/operator/api/consumers"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// podWatch follows this node's pods, and the labels of namespaces, but only while a ring or Cluster selects by them.
// So what is not asked for costs the API server nothing.
type podWatch struct {
	cache   cache.Cache
	tracker *pods.Tracker

	mu      sync.Mutex
	watched map[client.Object]cache.Informer
	// asked counts changes of watched. What was found before a change does not answer what is asked for after it.
	asked   uint64
	problem string
}

// The kinds that are watched.
var (
	podKind       client.Object = &corev1.Pod{}
	namespaceKind client.Object = namespaceMetadata()
)

func namespaceMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return m
}

// newPodWatch makes a podWatch that watches nothing yet. changed is called when the result of Pods changes.
func newPodWatch(config *rest.Config, node string, cgroups pods.Cgroups, changed func()) (*podWatch, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	w := &podWatch{watched: map[client.Object]cache.Informer{}}
	w.cache, err = cache.New(config, cache.Options{
		Scheme: scheme, Mapper: resources(),
		ByObject: map[client.Object]cache.ByObject{
			podKind:       {Field: fields.OneTermEqualSelector("spec.nodeName", node), Transform: trimPod},
			namespaceKind: {Transform: trimNamespace},
		},
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			if !ordinaryEnd(err) {
				w.note(err)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of the API server %s: %w", config.Host, err)
	}
	w.tracker = pods.NewTracker(cgroups, w.list, changed)
	return w, nil
}

func (w *podWatch) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problem = err.Error()
}

func (w *podWatch) start(ctx context.Context) {
	go func() {
		if err := w.cache.Start(ctx); err != nil {
			slog.Error("Pods are not watched any more; restart the agent", "error", err)
		}
	}()
	go w.tracker.Run(ctx)
}

// want watches what the spec's selectors need, and nothing else.
func (w *podWatch) want(ctx context.Context, spec v1.NodeCaptureSpec) {
	pods, namespaces := needs(spec)
	w.watch(ctx, podKind, pods)
	w.watch(ctx, namespaceKind, namespaces)
}

func (w *podWatch) watch(ctx context.Context, kind client.Object, wanted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, watched := w.watched[kind]
	if wanted == watched {
		return
	}
	w.asked++
	w.problem = ""
	if !wanted {
		if err := w.cache.RemoveInformer(ctx, kind); err != nil {
			slog.Warn("The watch of pods that no ring selects any more cannot be stopped", "error", err)
		}
		delete(w.watched, kind)
		w.tracker.Refresh()
		return
	}
	informer, err := w.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { w.tracker.Refresh() }, UpdateFunc: func(any, any) { w.tracker.Refresh() }, DeleteFunc: func(any) { w.tracker.Refresh() },
		})
	}
	if err != nil {
		w.problem = err.Error()
		return
	}
	w.watched[kind] = informer
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.tracker.Refresh()
		}
	}()
}

// Pods returns the known pods, or the reason why they are not known.
func (w *podWatch) Pods() (pods []plan.Pod, unknown string) {
	pods, of := w.tracker.Pods()
	w.mu.Lock()
	defer w.mu.Unlock()
	if of != 0 && of == w.asked {
		return pods, ""
	}
	if w.problem != "" {
		return nil, "the API server has not said which pods this node has: " + w.problem
	}
	return nil, "the API server has not said yet which pods this node has"
}

// list reads the pods with their namespaces' labels, once everything that is watched has arrived.
func (w *podWatch) list() ([]pods.Object, uint64) {
	of, namespaces := w.synced()
	if of == 0 {
		return nil, 0
	}
	ctx := context.Background()
	var list corev1.PodList
	if err := w.cache.List(ctx, &list); err != nil {
		w.note(err)
		return nil, 0
	}
	var labels map[string]map[string]string
	if namespaces {
		var err error
		if labels, err = w.namespaceLabels(ctx); err != nil {
			w.note(err)
			return nil, 0
		}
	}
	var objects []pods.Object
	for i := range list.Items {
		if o, alive := object(&list.Items[i], labels); alive {
			objects = append(objects, o)
		}
	}
	return objects, of
}

// synced returns the asked count for which the watched objects have arrived, and whether namespaces are among them.
func (w *podWatch) synced() (of uint64, namespaces bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, informer := range w.watched {
		if !informer.HasSynced() {
			return 0, false
		}
	}
	if w.watched[podKind] == nil {
		return 0, false
	}
	return w.asked, w.watched[namespaceKind] != nil
}

func (w *podWatch) namespaceLabels(ctx context.Context) (map[string]map[string]string, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := w.cache.List(ctx, &list); err != nil {
		return nil, err
	}
	labels := map[string]map[string]string{}
	for i := range list.Items {
		labels[list.Items[i].Name] = list.Items[i].Labels
	}
	return labels, nil
}

// labels returns the labels of a namespace, by which consumers are selected. For a moment after the agent's start it
// waits for them.
func (w *podWatch) labels(ctx context.Context, namespace string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if informer := w.namespaceInformer(); informer != nil {
		toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	}
	return w.knownLabels(ctx, namespace)
}

// knownLabels returns labels that are already known.
func (w *podWatch) knownLabels(ctx context.Context, namespace string) (map[string]string, error) {
	if informer := w.namespaceInformer(); informer == nil || !informer.HasSynced() {
		w.mu.Lock()
		defer w.mu.Unlock()
		return nil, errors.New(strings.TrimSuffix("the API server has not said them yet: "+w.problem, ": "))
	}
	found := namespaceMetadata()
	err := w.cache.Get(ctx, client.ObjectKey{Name: namespace}, found)
	return found.Labels, err
}

func (w *podWatch) namespaceInformer() cache.Informer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watched[namespaceKind]
}

// object converts a pod that may have processes.
func object(pod *corev1.Pod, namespaces map[string]map[string]string) (pods.Object, bool) {
	o := pods.Object{
		Pod: plan.Pod{
			Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, NamespaceLabels: namespaces[pod.Namespace], HostNetwork: pod.Spec.HostNetwork,
		},
		UID:     string(pod.UID),
		Running: pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil,
	}
	if mirror := mirrored(pod); mirror != "" {
		// Only the kubelet knows that it runs. It does not report a mirror pod that somebody else made.
		o.UID = mirror
		return o, pod.Status.Phase == corev1.PodRunning
	}
	return o, pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// needs returns what a spec's selectors select by. A selector by a namespace's name does not need the namespace.
func needs(spec v1.NodeCaptureSpec) (pods, namespaces bool) {
	for _, ring := range spec.Rings {
		for _, i := range ring.Spec.Interfaces {
			pods = pods || i.PodSelector != nil
			namespaces = namespaces || i.PodSelector != nil && !plan.ByName(i.NamespaceSelector)
		}
		namespaces = namespaces || consumers.ByLabels(ring.Spec.Consumers)
	}
	for _, cluster := range spec.Clusters {
		namespaces = namespaces || consumers.ByLabels(cluster.Spec.Consumers)
	}
	return pods, namespaces
}

// trimPod keeps only what list reads, so that large pods take little memory of the agent.
func trimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	out := &corev1.Pod{
		TypeMeta:   pod.TypeMeta,
		ObjectMeta: trimmed(pod.ObjectMeta),
		Spec:       corev1.PodSpec{HostNetwork: pod.Spec.HostNetwork},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if mirror := pod.Annotations[mirrorAnnotation]; mirror != "" {
		out.Annotations = map[string]string{mirrorAnnotation: mirror}
	}
	return out, nil
}

func trimNamespace(in any) (any, error) {
	if namespace, ok := in.(*metav1.PartialObjectMetadata); ok {
		return &metav1.PartialObjectMetadata{TypeMeta: namespace.TypeMeta, ObjectMeta: trimmed(namespace.ObjectMeta)}, nil
	}
	return in, nil
}

func trimmed(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels, DeletionTimestamp: m.DeletionTimestamp,
	}
}
