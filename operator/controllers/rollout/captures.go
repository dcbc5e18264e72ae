// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// captures writes NodeCaptures at the least cost for the API server and the operator: an edit may need thousands of writes, each
// with many rings. The returned objects hold the spec that was passed.
type captures struct{ client rest.Interface }

func newCaptures(mgr ctrl.Manager) (captures, error) {
	c, err := apiutil.RESTClientForGVK(v1alpha1.GroupVersion.WithKind("NodeCapture"), false, false,
		mgr.GetConfig(), serializer.NewCodecFactory(mgr.GetScheme()), mgr.GetHTTPClient())
	if err != nil {
		return captures{}, fmt.Errorf("make a client for NodeCaptures: %w", err)
	}
	return captures{c}, nil
}

// metadataOnly asks the API server to answer with the metadata instead of the whole object.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// create creates a node's NodeCapture.
func (c captures) create(ctx context.Context, node string, spec v1alpha1.NodeCaptureSpec) (*v1alpha1.NodeCapture, error) {
	return send(ctx, c.client.Post(), &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: spec})
}

// update replaces the NodeCapture's spec; it does not change current. It fails with a conflict if current is outdated: a plan
// for an older state must not undo a newer one.
func (c captures) update(ctx context.Context, current *v1alpha1.NodeCapture, spec v1alpha1.NodeCaptureSpec) (*v1alpha1.NodeCapture, error) {
	// The status is not written here, and may be large. A whole object costs the API server a third less than a patch.
	sent := &v1alpha1.NodeCapture{ObjectMeta: current.ObjectMeta, Spec: spec}
	// This stops the API server's tracking of field owners: the spec is the operator's, the status the agent's.
	sent.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	changed, err := send(ctx, c.client.Put().Name(current.Name), sent)
	if err != nil {
		return nil, err
	}
	changed.Status = current.Status
	return changed, nil
}

func send(ctx context.Context, request *rest.Request, sent *v1alpha1.NodeCapture) (*v1alpha1.NodeCapture, error) {
	var answer metav1.PartialObjectMetadata
	err := request.Resource("nodecaptures").
		SetHeader("Accept", metadataOnly).
		Param("fieldValidation", metav1.FieldValidationIgnore). // no person wrote it: there are no mistyped fields to look for
		Body(sent).Do(ctx).Into(&answer)
	if err != nil {
		return nil, err
	}
	return &v1alpha1.NodeCapture{ObjectMeta: answer.ObjectMeta, Spec: sent.Spec}, nil
}
