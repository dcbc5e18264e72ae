// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
	"github.com/ringcap/ringcap/operator/suspend"
)

// Planner makes the plans for all who read them: the rollout reconciler writes them to the nodes, the status reconciler reports
// them. It is safe for concurrent use.
type Planner struct {
	Reader client.Reader
	// CheckFilter returns why a filter does not compile.
	CheckFilter func(expression string) error
	// FleetBytes is the maximum size of the specs of all NodeCaptures together; 0 for no limit.
	FleetBytes int64
	// Now returns the time.
	Now func() time.Time
	// Mark is set during an uninstall; may be nil.
	Mark *suspend.Mark

	mu    sync.Mutex
	beats beats
	// written holds NodeCaptures that the cache may not have yet, by name.
	written map[string]*v1alpha1.NodeCapture
	// last is the last plan, nil before the first; made is its input.
	last *plan.Plan
	made plan.Input
}

// Latest returns the present state with its plan: the last plan if its input has not changed.
func (p *Planner) Latest(ctx context.Context) (*Snapshot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mark, err := p.Mark.State(ctx)
	if err != nil || mark.Gone {
		return &Snapshot{Mark: mark}, err
	}
	s, err := take(ctx, p.Reader)
	if err != nil {
		return nil, err
	}
	s.Mark = mark
	now := p.Now()
	p.beats.see(s.Captures, now)
	s.Since = p.beats.since
	p.recall(s.Captures)
	in := s.input(now)
	in.FleetBytes = p.FleetBytes
	if p.last == nil || p.last.Unchecked() || !reflect.DeepEqual(in, p.made) {
		p.made = in
		in.CheckFilter = p.CheckFilter
		made := plan.Make(in)
		p.last = &made
	}
	s.Plan = *p.last
	return s, nil
}

// Wrote must be called for each NodeCapture that was written. The next states include it: the cache may be behind, and the plan
// must count each node that is getting a new version of a ring.
func (p *Planner) Wrote(capture *v1alpha1.NodeCapture) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.written == nil {
		p.written = map[string]*v1alpha1.NodeCapture{}
	}
	p.written[capture.Name] = capture
}

// recall updates what the cache returned with what was written since; the status is the cache's.
func (p *Planner) recall(captures map[string]*v1alpha1.NodeCapture) {
	for name, written := range p.written {
		cached := captures[name]
		if cached == nil || cached.UID != written.UID || cached.Generation >= written.Generation {
			delete(p.written, name)
			continue
		}
		captures[name] = &v1alpha1.NodeCapture{ObjectMeta: written.ObjectMeta, Spec: written.Spec, Status: cached.Status}
	}
}

// input returns the plan's input for the state.
func (s *Snapshot) input(now time.Time) plan.Input {
	in := plan.Input{
		Rings: slices.Clone(s.Rings), Clusters: slices.Clone(s.Clusters), Nodes: s.nodes, Suspended: s.Mark.Marked,
		Current: make(map[string]v1alpha1.NodeCaptureSpec, len(s.Captures)),
	}
	// A change of a status does not need a new plan.
	for i := range in.Rings {
		in.Rings[i].Status, in.Rings[i].ResourceVersion = v1alpha1.CaptureStatus{}, ""
	}
	for i := range in.Clusters {
		in.Clusters[i].Status, in.Clusters[i].ResourceVersion = v1alpha1.CaptureStatus{}, ""
	}
	for name, capture := range s.Captures {
		in.Current[name] = capture.Spec
	}
	for i := range in.Nodes {
		observe(&in.Nodes[i], s.Captures[in.Nodes[i].Name], now)
	}
	return in
}
