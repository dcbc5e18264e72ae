// SPDX-License-Identifier: Apache-2.0

// Package cleanup deletes all CaptureRings and Clusters and waits until the nodes are rid of them, while an operator
// and the agents still run: the last step before ringcap is uninstalled.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Run deletes everything and waits until it is gone. What it waits for is written to out. When the context ends before,
// the error names what is left and why.
func Run(ctx context.Context, c client.Client, out io.Writer) error {
	if err := deleteAll(ctx, c); err != nil {
		return err
	}
	var left []string
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		now, err := remaining(ctx, c)
		if err != nil {
			return false, err
		}
		if strings.Join(now, "\n") != strings.Join(left, "\n") && len(now) > 0 {
			fmt.Fprintf(out, "waiting for\n  %s\n", strings.Join(now, "\n  "))
		}
		left = now
		return len(left) == 0, nil
	})
	switch {
	case err == nil:
		return nil
	case len(left) > 0 && ctx.Err() != nil:
		return fmt.Errorf("not all nodes are clean; delete the pods that hold queues, and try again:\n  %s", strings.Join(left, "\n  "))
	}
	return err
}

// deleteAll deletes one by one: the right to delete a collection is one more than is needed.
func deleteAll(ctx context.Context, c client.Client) error {
	var rings v1alpha1.CaptureRingList
	var clusters v1alpha1.ClusterList
	if err := errors.Join(c.List(ctx, &rings), c.List(ctx, &clusters)); err != nil {
		return fmt.Errorf("list what there is: %w", err)
	}
	for i := range clusters.Items {
		if err := c.Delete(ctx, &clusters.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Cluster %s: %w", clusters.Items[i].Name, err)
		}
	}
	for i := range rings.Items {
		if err := c.Delete(ctx, &rings.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete CaptureRing %s: %w", rings.Items[i].Name, err)
		}
	}
	return nil
}

// remaining says of each object that is still there what its deletion waits for.
func remaining(ctx context.Context, c client.Client) ([]string, error) {
	var rings v1alpha1.CaptureRingList
	var clusters v1alpha1.ClusterList
	if err := errors.Join(c.List(ctx, &rings), c.List(ctx, &clusters)); err != nil {
		return nil, fmt.Errorf("list what is left: %w", err)
	}
	var left []string
	for _, cluster := range clusters.Items {
		left = append(left, describe("Cluster", cluster.Name, cluster.Status))
	}
	for _, ring := range rings.Items {
		left = append(left, describe("CaptureRing", ring.Name, ring.Status))
	}
	return left, nil
}

func describe(kind, name string, status v1alpha1.CaptureStatus) string {
	condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if condition == nil || condition.Reason != v1alpha1.ReasonDeleting {
		return fmt.Sprintf("%s %s: the operator has not seen to it yet", kind, name)
	}
	return fmt.Sprintf("%s %s: %s", kind, name, condition.Message)
}
