// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/node-agent/access"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Scheme has the kinds that an agent reads and writes.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := v1.AddToScheme(s); err != nil {
		return nil, err
	}
	return s, corev1.AddToScheme(s)
}

// watchNode keeps the node's NodeCapture in a cache, and calls changed when its spec may have changed. Until the API
// server has answered once, it goes on trying.
func watchNode(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, name string, changed func()) (client.Reader, error) {
	nodeCaptures, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: map[client.Object]cache.ByObject{
		&v1.NodeCapture{}: {Field: fields.OneTermEqualSelector("metadata.name", name)},
	}})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- nodeCaptures.Start(ctx) }()
	for {
		informer, err := nodeCaptures.GetInformer(ctx, &v1.NodeCapture{}, cache.BlockUntilSynced(true))
		if err == nil {
			_, err = informer.AddEventHandler(generationHandler(changed))
		}
		// Before the cache has started, the informer does not wait.
		if err == nil && nodeCaptures.WaitForCacheSync(ctx) {
			return nodeCaptures, nil
		}
		slog.Warn("NodeCaptures cannot be watched; the data path stays as it is", "error", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case err := <-stopped:
			return nil, fmt.Errorf("watch NodeCaptures: %w", err)
		case <-time.After(5 * time.Second):
		}
	}
}

// generationHandler ignores the statuses, which are this agent's own.
func generationHandler(changed func()) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		DeleteFunc: func(any) { changed() },
		UpdateFunc: func(before, after any) {
			b, okBefore := before.(client.Object)
			a, okAfter := after.(client.Object)
			if !okBefore || !okAfter || b.GetGeneration() != a.GetGeneration() || b.GetUID() != a.GetUID() {
				changed()
			}
		},
	}
}

// desired reads the node's spec. A node without a NodeCapture, or whose NodeCapture is being deleted, captures nothing.
func desired(ctx context.Context, reader client.Reader, name string) (v1.NodeCaptureSpec, int64, bool) {
	var found v1.NodeCapture
	err := reader.Get(ctx, client.ObjectKey{Name: name}, &found)
	switch {
	case apierrors.IsNotFound(err):
		return v1.NodeCaptureSpec{}, 0, true
	case err != nil:
		slog.Error("The node's NodeCapture cannot be read; the data path stays as it is", "error", err)
		return v1.NodeCaptureSpec{}, 0, false
	case found.DeletionTimestamp != nil:
		return v1.NodeCaptureSpec{}, found.Generation, true
	}
	spec := found.Spec.DeepCopy()
	for i := range spec.Rings {
		spec.Rings[i].Spec.Default()
	}
	for i := range spec.Clusters {
		spec.Clusters[i].Spec.Default()
	}
	return *spec, found.Generation, true
}

// podUIDs looks pods up in the API.
type podUIDs struct{ client client.Reader }

// mirrorAnnotation of a static pod's mirror is the UID that the kubelet knows the pod by.
const mirrorAnnotation = "kubernetes.io/config.mirror"

// PodUIDs implements access.UIDs.
func (p podUIDs) PodUIDs(ctx context.Context, pod access.Pod) ([]string, error) {
	var found corev1.Pod
	err := p.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: pod.Name}, &found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	uids := []string{string(found.UID)}
	if mirror := found.Annotations[mirrorAnnotation]; mirror != "" {
		uids = append(uids, mirror)
	}
	return uids, nil
}
