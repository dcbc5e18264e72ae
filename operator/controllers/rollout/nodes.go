// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/snapshot"
)

// different returns the nodes with NodeCaptures that differ from the plan, sorted.
func different(state *snapshot.Snapshot) []string {
	var names []string
	for name, spec := range state.Plan.Nodes {
		if current, has := state.Captures[name]; !has || !same(current.Spec, spec) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// same reports whether two specs are equal. Most of them share memory, which the first comparison detects fast.
func same(a, b v1alpha1.NodeCaptureSpec) bool {
	return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b)
}

// writeNodes writes each node's NodeCapture that differs from the plan. The others are not written: a new generation means that
// the node has something to do.
func (s *scope) writeNodes(ctx context.Context) error {
	names := s.different
	written := make([]*v1alpha1.NodeCapture, len(names))
	var behind atomic.Bool
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i, name := range names {
		group.Go(func() (err error) {
			written[i], err = s.writeNode(ctx, name, s.state.Plan.Nodes[name])
			if outdated(err) {
				// This node is written when the watch has updated the cache; the others need not wait for it.
				behind.Store(true)
				return nil
			}
			return err
		})
	}
	err := group.Wait()
	if behind.Load() {
		s.runAgain(time.Second)
	}
	for i, name := range names {
		if written[i] != nil {
			s.state.Captures[name] = written[i]
			s.Planner.Wrote(written[i])
		}
	}
	return err
}

// writers is the number of NodeCaptures that are written in parallel: one by one, thousands would take minutes.
const writers = 16

// writeNode returns the object as written.
func (s *scope) writeNode(ctx context.Context, name string, spec v1alpha1.NodeCaptureSpec) (*v1alpha1.NodeCapture, error) {
	log := ctrl.LoggerFrom(ctx).WithValues("node", name)
	current, ok := s.state.Captures[name]
	if !ok {
		created, err := s.captures.create(ctx, name, spec)
		if err != nil {
			return nil, describe(err, "create NodeCapture %s", name)
		}
		log.Info("created NodeCapture", "rings", len(spec.Rings), "clusters", len(spec.Clusters))
		return created, nil
	}
	changed, err := s.captures.update(ctx, current, spec)
	if err != nil {
		return nil, describe(err, "update NodeCapture %s", name)
	}
	log.Info("changed NodeCapture", "generation", changed.Generation, "rings", len(spec.Rings), "clusters", len(spec.Clusters))
	return changed, nil
}

// removeNodes deletes the NodeCaptures of nodes that are gone.
func (s *scope) removeNodes(ctx context.Context) error {
	for name, capture := range s.state.Captures {
		if _, planned := s.state.Plan.Nodes[name]; planned {
			continue
		}
		if err := s.Client.Delete(ctx, capture); client.IgnoreNotFound(err) != nil {
			return describe(err, "delete NodeCapture %s of a node that is gone", name)
		}
		delete(s.state.Captures, name)
		ctrl.LoggerFrom(ctx).Info("deleted the NodeCapture of a node that is gone", "node", name)
	}
	return nil
}
