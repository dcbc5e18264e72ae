// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// nodeWatch keeps the node's NodeCapture in a cache. It retries until the API server has answered once, and whenever
// the watch ends, at growing intervals of up to half a minute.
type nodeWatch struct {
	name     string
	cache    cache.Cache
	informer cache.Informer
	outage   outage
}

// newNodeWatch prepares a watch, but sends no request. failed gets the errors of the tries before the first success.
func newNodeWatch(config *rest.Config, name string, failed func(error)) (*nodeWatch, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	w := &nodeWatch{name: name, outage: outage{
		begun: "NodeCaptures cannot be watched; the data path stays as it is, and it is tried again",
		ended: "NodeCaptures are watched",
	}}
	note := func(err error) {
		w.outage.note(err)
		if err != nil && !w.informer.HasSynced() {
			failed(err)
		}
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return watchTransport{next, note} })
	w.cache, err = cache.New(config, cache.Options{
		Scheme: scheme, Mapper: resources(),
		ByObject: map[client.Object]cache.ByObject{
			&v1.NodeCapture{}: {Field: fields.OneTermEqualSelector("metadata.name", name)},
		},
		DefaultWatchErrorHandler: func(ctx context.Context, _ *toolscache.Reflector, err error) {
			if ctx.Err() == nil && !ordinaryEnd(err) {
				note(err)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of the API server %s: %w", config.Host, err)
	}
	w.informer, err = w.cache.GetInformer(context.Background(), &v1.NodeCapture{}, cache.BlockUntilSynced(false))
	return w, err
}

// watchTransport notes the outcome of requests, because informers do not report that a server cannot be reached. It
// ignores refusals, because informers try in more than one way.
type watchTransport struct {
	next http.RoundTripper
	note func(error)
}

// RoundTrip implements http.RoundTripper.
func (t watchTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	switch {
	case r.Context().Err() != nil:
	case err != nil:
		t.note(fmt.Errorf("reach the API server at %s: %w", r.URL.Host, err))
	case response.StatusCode < http.StatusMultipleChoices:
		t.note(nil)
	}
	return response, err
}

// ordinaryEnd reports whether a healthy API server ended a watch in the usual way. A wrapped end of file is that of a
// request.
func ordinaryEnd(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || err == io.EOF || err == io.ErrUnexpectedEOF
}

// start watches until ctx ends, and calls changed when the spec has become known or may have changed.
func (w *nodeWatch) start(ctx context.Context, changed func()) error {
	if _, err := w.informer.AddEventHandler(generationHandler(changed)); err != nil {
		return fmt.Errorf("watch NodeCaptures: %w", err)
	}
	go func() {
		if err := w.cache.Start(ctx); err != nil {
			slog.Error("NodeCaptures are not watched any more; restart the agent", "error", err)
		}
	}()
	go func() {
		if w.cache.WaitForCacheSync(ctx) {
			changed()
		}
	}()
	return nil
}

// generationHandler ignores changes of the status, which this agent makes itself.
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

// desired returns the node's spec, once the API server has sent it.
func (w *nodeWatch) desired(ctx context.Context) (v1.NodeCaptureSpec, int64, bool) {
	if !w.informer.HasSynced() {
		return v1.NodeCaptureSpec{}, 0, false
	}
	return desired(ctx, w.cache, w.name)
}

// desired reads the node's spec. A node without a NodeCapture, or with one that is being deleted, captures nothing.
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
	case found.Spec.Undecodable != "":
		slog.Error("The node's NodeCapture does not decode; the data path stays as it is until the operator has written it again",
			"error", found.Spec.Undecodable)
		return v1.NodeCaptureSpec{}, 0, false
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
