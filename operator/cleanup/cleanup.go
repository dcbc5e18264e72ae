// SPDX-License-Identifier: Apache-2.0

// Package cleanup removes all CaptureRings and Clusters from the nodes and waits until no node has them any more. It runs while
// an operator and the agents still run: it is the last step before ringcap is uninstalled. The objects, and the PodCaptures that
// some rings are made for, are deleted, or kept for the next install.
package cleanup

import (
	"context"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Run deletes all objects and waits until they are gone, including those that are created in the meantime, for example by a
// pipeline. It writes to out what it waits for. If the context ends first, the error names what is left and why.
func Run(ctx context.Context, c client.Client, out io.Writer) error {
	return untilNone(ctx, out, func(ctx context.Context) ([]string, error) {
		if err := deletePodCaptures(ctx, c); err != nil {
			return nil, err
		}
		all, err := objects(ctx, c)
		if err != nil {
			return nil, err
		}
		var left []string
		for _, o := range all {
			left = append(left, o.waits())
			// One by one: deleting the collection would need one more right.
			if o.GetDeletionTimestamp() == nil {
				err = c.Delete(ctx, o.Object)
			}
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("delete %s: %w", o, err)
			}
		}
		return left, nil
	})
}

// untilNone waits until remaining returns nothing.
func untilNone(ctx context.Context, out io.Writer, remaining func(context.Context) ([]string, error)) error {
	var left []string
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		var now []string
		err := insist(ctx, out, func(ctx context.Context) (err error) {
			now, err = remaining(ctx)
			return err
		})
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

// deletePodCaptures must run before their rings are deleted: the operator would create the rings again.
func deletePodCaptures(ctx context.Context, c client.Client) error {
	var captures v1alpha1.PodCaptureList
	if err := c.List(ctx, &captures); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("list PodCaptures: %w", err)
	}
	for i := range captures.Items {
		if err := c.Delete(ctx, &captures.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete PodCapture %s: %w", client.ObjectKeyFromObject(&captures.Items[i]), err)
		}
	}
	return nil
}
