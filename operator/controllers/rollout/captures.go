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

// captures updates NodeCaptures at the least cost for the API server: an edit may have it do thousands, of many rings each.
type captures struct{ client rest.Interface }

func newCaptures(mgr ctrl.Manager) (captures, error) {
	c, err := apiutil.RESTClientForGVK(v1alpha1.GroupVersion.WithKind("NodeCapture"), false, false,
		mgr.GetConfig(), serializer.NewCodecFactory(mgr.GetScheme()), mgr.GetHTTPClient())
	if err != nil {
		return captures{}, fmt.Errorf("make a client for NodeCaptures: %w", err)
	}
	return captures{c}, nil
}

// metadataOnly has the API server answer with the metadata instead of all that it was just sent.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// update gives the NodeCapture another spec and returns what it is then; current stays as it is. It fails with a conflict
// when current is outdated: a plan over an older state must not undo a newer one.
func (c captures) update(ctx context.Context, current *v1alpha1.NodeCapture, spec v1alpha1.NodeCaptureSpec) (*v1alpha1.NodeCapture, error) {
	// The status is not written here, and may be large. A whole object costs the API server a third less than a patch.
	sent := &v1alpha1.NodeCapture{ObjectMeta: current.ObjectMeta, Spec: spec}
	// By this the API server forgets who wrote which field, and finds it out no more: the spec is the operator's, the status
	// the agent's.
	sent.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	var answer metav1.PartialObjectMetadata
	err := c.client.Put().Resource("nodecaptures").Name(current.Name).
		SetHeader("Accept", metadataOnly).
		Param("fieldValidation", metav1.FieldValidationIgnore). // no person wrote it: there are no fields to look for that are mistyped
		Body(sent).Do(ctx).Into(&answer)
	if err != nil {
		return nil, err
	}
	return &v1alpha1.NodeCapture{ObjectMeta: answer.ObjectMeta, Spec: spec, Status: current.Status}, nil
}
