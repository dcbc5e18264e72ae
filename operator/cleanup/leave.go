// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"fmt"
	"io"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/heartbeat"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/wait"
)

// Leave runs when the operator and the agents are gone. It waits until a DaemonSet has cleaned the nodes, then deletes what
// operator and agents created for themselves: the NodeCaptures, and their Leases in the DaemonSet's namespace.
func Leave(ctx context.Context, c client.Client, nodes client.ObjectKey, lease string, out io.Writer) error {
	if err := wait.DaemonSet(ctx, c, nodes, out); err != nil {
		return fmt.Errorf("not all nodes are clean; on each that is not, run `node-agent cleanup --unload`, or restart it: %w", err)
	}
	if err := insist(ctx, out, func(ctx context.Context) error { return deleteOwn(ctx, c, nodes.Namespace, lease) }); err != nil {
		return err
	}
	fmt.Fprintln(out, "All nodes are clean.")
	return nil
}

// deleteOwn deletes what operator and agents created for themselves.
func deleteOwn(ctx context.Context, c client.Client, namespace, lease string) error {
	var captures v1alpha1.NodeCaptureList
	if err := c.List(ctx, &captures); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("list NodeCaptures: %w", err)
	}
	for i := range captures.Items {
		if err := c.Delete(ctx, &captures.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete NodeCapture %s: %w", captures.Items[i].Name, err)
		}
	}
	// Leases are deleted with their NodeCaptures, but not when the CRD is deleted with its NodeCaptures.
	beats := []client.DeleteAllOfOption{client.InNamespace(namespace), client.MatchingLabels(heartbeat.Labels())}
	if err := c.DeleteAllOf(ctx, &coordinationv1.Lease{}, beats...); err != nil {
		return fmt.Errorf("delete the agents' Leases: %w", err)
	}
	elected := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lease}}
	if err := c.Delete(ctx, elected); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Lease %s: %w", lease, err)
	}
	return nil
}
