// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// object is a CaptureRing or a Cluster.
type object struct {
	client.Object
	kind   string
	status *v1alpha1.CaptureStatus
}

// objects returns the Clusters, and then the CaptureRings.
func objects(ctx context.Context, c client.Client) ([]object, error) {
	var clusters v1alpha1.ClusterList
	var rings v1alpha1.CaptureRingList
	if err := errors.Join(c.List(ctx, &clusters), c.List(ctx, &rings)); err != nil {
		return nil, fmt.Errorf("list what there is: %w", err)
	}
	var all []object
	for i := range clusters.Items {
		all = append(all, object{&clusters.Items[i], "Cluster", &clusters.Items[i].Status})
	}
	for i := range rings.Items {
		all = append(all, object{&rings.Items[i], "CaptureRing", &rings.Items[i].Status})
	}
	return all, nil
}

func (o object) String() string { return o.kind + " " + o.GetName() }

// waits returns what the operator still waits for before it releases the object.
func (o object) waits() string {
	condition := meta.FindStatusCondition(o.status.Conditions, v1alpha1.ConditionReady)
	if condition != nil {
		switch condition.Reason {
		case v1alpha1.ReasonDeleting, v1alpha1.ReasonSuspending:
			return fmt.Sprintf("%s: %s", o, condition.Message)
		}
	}
	return fmt.Sprintf("%s: the operator has not processed it yet", o)
}
