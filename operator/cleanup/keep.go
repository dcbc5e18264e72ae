// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/suspend"
)

// Keep removes everything from the nodes as Run does, but keeps the objects, without the operator's finalizer. It marks the
// operator's Deployment for that. If it fails the mark stays, and the conditions of all objects report it.
func Keep(ctx context.Context, c client.Client, operator client.ObjectKey, out io.Writer) error {
	var since string
	if err := insist(ctx, out, func(ctx context.Context) (err error) {
		since, err = mark(ctx, c, operator)
		return err
	}); err != nil {
		return err
	}
	if since == "" {
		fmt.Fprintf(out, "Deployment %s is gone already.\n", operator)
	}
	return untilNone(ctx, out, func(ctx context.Context) ([]string, error) {
		all, err := objects(ctx, c)
		var left []string
		for _, o := range all {
			if !o.released(since) {
				left = append(left, o.waits())
			}
		}
		return left, err
	})
}

// mark marks the Deployment unless it is marked, and returns the mark; "" if the Deployment is gone.
func mark(ctx context.Context, c client.Client, operator client.ObjectKey) (since string, err error) {
	deployment := suspend.Metadata()
	err = c.Get(ctx, operator, deployment)
	switch {
	case apierrors.IsNotFound(err), err == nil && deployment.DeletionTimestamp != nil:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read Deployment %s: %w", operator, err)
	case deployment.Annotations[suspend.Annotation] != "":
		return deployment.Annotations[suspend.Annotation], nil
	}
	since = time.Now().UTC().Format(time.RFC3339)
	marked := deployment.DeepCopy()
	metav1.SetMetaDataAnnotation(&marked.ObjectMeta, suspend.Annotation, since)
	if err := c.Patch(ctx, marked, client.MergeFrom(deployment)); err != nil {
		return "", fmt.Errorf("mark Deployment %s: %w", operator, err)
	}
	return since, nil
}

// released reports whether no node has the object, and the operator, if it still runs, gives it to no node. Only the object's
// conditions show the latter: the operator may have been carrying out an older plan when the mark was set.
func (o object) released(since string) bool {
	if slices.Contains(o.GetFinalizers(), v1alpha1.FinalizerNodes) {
		return false
	}
	if since == "" || o.GetDeletionTimestamp() != nil {
		return true
	}
	ready := meta.FindStatusCondition(o.status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonSuspended && strings.Contains(ready.Message, since)
}
