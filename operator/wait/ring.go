// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Ring waits until a CaptureRing is ready in its present generation.
func Ring(ctx context.Context, c client.Client, name string, out io.Writer) error {
	var ring v1alpha1.CaptureRing
	err := until(ctx, out, func(ctx context.Context) (string, error) {
		ring = v1alpha1.CaptureRing{}
		err := c.Get(ctx, client.ObjectKey{Name: name}, &ring)
		if apierrors.IsNotFound(err) {
			return fmt.Sprintf("there is no CaptureRing %s", name), nil
		}
		return notReady(&ring), err
	})
	if err == nil {
		fmt.Fprintf(out, "CaptureRing %s: %s\n", name, meta.FindStatusCondition(ring.Status.Conditions, v1alpha1.ConditionReady).Message)
	}
	return err
}

func notReady(ring *v1alpha1.CaptureRing) string {
	ready := meta.FindStatusCondition(ring.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.ObservedGeneration != ring.Generation:
		return fmt.Sprintf("the operator has not processed CaptureRing %s yet: is its pod running (app.kubernetes.io/component=operator)?", ring.Name)
	case ready.Status != metav1.ConditionTrue:
		return fmt.Sprintf("CaptureRing %s is not ready: %s: %s", ring.Name, ready.Reason, ready.Message)
	}
	return ""
}
