// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Trials are a dead man's switch: what can cut the node off from its network is undone when the API server is lost right after
// it was applied, and is not tried again until the ring's spec changes. What has stood its trial stays when the API server is
// lost later.
//
//	             asked before,            it answers when Within is over
//	             it answers
//	(not tried) -------------> trying -------------------------------> proven
//	     |                       |
//	     | it does not           | it is silent for Within, or the machine boots
//	     v                       v
//	held until it does        refused
//
// Run is for one goroutine of its own; the rest is the Reconciler's. A nil *Trials tries everything and watches nothing.
type Trials struct {
	// Reach asks the API server for anything; nil is an answer.
	Reach func(context.Context) error
	// Within is how long the API server may be silent.
	Within time.Duration
	// Changed wakes the loop when a trial is over.
	Changed Signal

	// records by ring.
	records node.Records[trial]
	bootID  string
	now     func() time.Time
	began   Signal
	// fresh are rings whose trial was admitted and has to be applied; unmade those that were not planned, or that their engine
	// refused.
	fresh, unmade map[string]bool

	mu sync.Mutex
	// from is when something was applied last, or this process began, which has to be given the time to ask.
	from time.Time
	// ends is when a trial can be over; zero when there is none. answered is when the API server was asked what it answered last.
	ends, answered time.Time
}

// trial is what a node knows of a ring that can cut it off: by key, as plan.TryKey makes them.
type trial struct {
	// Proven is what has stood its trial last, Refused what has not, and why.
	Proven  string `json:"proven,omitempty"`
	Refused string `json:"refused,omitempty"`
	Why     string `json:"why,omitempty"`
	// Trying is on trial, for what it does, since it was applied, in a boot.
	Trying  string    `json:"trying,omitempty"`
	Watched string    `json:"watched,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	BootID  string    `json:"bootID,omitempty"`
	// Idle: nothing was lost, and nothing proven, for the ring could not be made.
	Idle bool `json:"idle,omitempty"`
	// Spec of the node and its generation, of a trial that is not over, or was lost and may have to be undone: an agent that
	// starts without an API server has nothing else to go by.
	Spec       *v1.NodeCaptureSpec `json:"spec,omitempty"`
	Generation int64               `json:"generation,omitempty"`
}

// NewTrials makes Trials that keep their state in a file, which must outlive a boot.
func NewTrials(path, bootID string, within time.Duration, reach func(context.Context) error, changed Signal) *Trials {
	return &Trials{
		Reach: reach, Within: within, Changed: changed, records: node.Records[trial]{Path: path}, bootID: bootID,
		now: time.Now, began: NewSignal(), from: time.Now(), fresh: map[string]bool{}, unmade: map[string]bool{},
	}
}

// Run asks the API server while something is on trial, until ctx ends.
func (t *Trials) Run(ctx context.Context) {
	const asks = 15
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.began:
		}
		for !t.over() {
			if err := t.ask(ctx); err != nil {
				slog.Warn("The API server does not answer, and something is on trial that may be why", "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(t.Within / asks):
			}
		}
		t.Changed.Raise()
	}
}

// ask notes an answer with the time of the question.
func (t *Trials) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.Within/10)
	defer cancel()
	asked := t.now()
	err := t.Reach(ctx)
	if err == nil {
		t.mu.Lock()
		t.answered = asked
		t.mu.Unlock()
	}
	return err
}

// over says that asking finds out nothing more: all trials have been stood, or lost.
func (t *Trials) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ends.IsZero() || !t.answered.Before(t.ends) || t.silent()
}

// silent says that the API server has not answered for too long since something was applied. The lock is held.
func (t *Trials) silent() bool {
	since := t.from
	if t.answered.After(since) {
		since = t.answered
	}
	return t.now().Sub(since) >= t.Within
}

// watch begins to ask, or goes on, for what was applied.
func (t *Trials) watch(since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if since.After(t.from) {
		t.from = since
	}
	if ends := since.Add(t.Within); ends.After(t.ends) {
		t.ends = ends
	}
	t.began.Raise()
}

// load reads what was tried. A file that cannot be read is set aside: its rings are on trial once more, which protects the node.
func (t *Trials) load() map[string]trial {
	have, err := t.records.Load()
	if err != nil {
		aside := Aside(t.records.Path)
		slog.Error("What was tried on this node is not known, and may be tried again. The file is set aside",
			"error", errors.Join(err, os.Rename(t.records.Path, aside)), "aside", aside)
		return map[string]trial{}
	}
	return have
}

// forget drops the rings that there are no more, and what is kept for want of a spec; it is called with one that is known.
func (t *Trials) forget(spec v1.NodeCaptureSpec) error {
	if t == nil {
		return nil
	}
	have := t.load()
	for name, r := range have {
		if !slices.ContainsFunc(spec.Rings, func(ring v1.NodeRing) bool { return ring.Name == name }) {
			delete(have, name)
			continue
		}
		if r.Trying == "" {
			r.Spec, r.Generation = nil, 0
		}
		have[name] = r
	}
	return t.records.Save(have)
}

// refused ends the trials that are over, and says what the node is not to have.
func (t *Trials) refused() (map[string]plan.Refusal, error) {
	if t == nil {
		return nil, nil
	}
	have := t.load()
	refused := map[string]plan.Refusal{}
	for name, r := range have {
		r = t.judge(name, r)
		have[name] = r
		if r.Refused != "" {
			refused[r.Refused] = plan.Refusal{Reason: v1.ReasonNodeCutOff, Message: r.Why}
		}
	}
	return refused, t.records.Save(have)
}

// judge ends one trial if it is over.
func (t *Trials) judge(name string, r trial) trial {
	t.mu.Lock()
	silent, stood := t.silent(), !t.answered.Before(r.Since.Add(t.Within))
	t.mu.Unlock()
	switch {
	case r.Trying == "":
	case r.BootID != t.bootID:
		return r.lose(name, "the machine was booted while it was tried")
	case r.Idle:
	case stood && t.unmade[name]:
		r.Idle = true
	case stood:
		slog.Info("A ring has stood its trial: the API server is still there", "ring", name, "what", r.Watched)
		return trial{Proven: r.Trying, Refused: r.Refused, Why: r.Why}
	case silent:
		return r.lose(name, fmt.Sprintf("the API server could not be reached for %s after that was applied, at %s, and it was undone",
			t.Within, r.Since.UTC().Format(time.RFC3339)))
	default:
		t.watch(r.Since)
	}
	return r
}

func (r trial) lose(name, why string) trial {
	slog.Error("A ring may have cut this node off, and is undone", "ring", name, "what", r.Watched, "why", why)
	r.Refused, r.Trying = r.Trying, ""
	r.Why = fmt.Sprintf("%s: %s; it is not tried again on this node until the ring's spec changes", r.Watched, why)
	return r
}

// admit begins the trials of what is planned and was never tried, and adds to what is refused what cannot be tried now; again
// says that the plan is to be made again for that.
func (t *Trials) admit(ctx context.Context, report *Report, refused map[string]plan.Refusal) (again bool, err error) {
	if t == nil {
		return false, nil
	}
	have := t.load()
	asked := false
	for name, verdict := range report.Plan.Rings {
		r := have[name]
		if verdict.Watched == "" || r.Proven == verdict.Key || r.Trying == verdict.Key {
			continue
		}
		if !asked {
			asked, err = true, t.ask(ctx)
		}
		if err != nil {
			again = true
			refused[verdict.Key] = plan.Refusal{Reason: v1.ReasonAPIServerUnreachable, Message: fmt.Sprintf(
				"%s: the node could be cut off by that, and would not notice while it cannot reach the API server (%v): it is tried when it can", verdict.Watched, err)}
			continue
		}
		r.Trying, r.Watched, r.Since, r.BootID, r.Idle = verdict.Key, verdict.Watched, t.now(), t.bootID, false
		r.Spec, r.Generation = &report.Spec, report.Generation
		have[name], t.fresh[name] = r, true
	}
	return again, t.records.Save(have)
}

// applied is told what became of the plan: the time of a trial runs from when the ring was made.
func (t *Trials) applied(rings map[string]plan.Verdict) error {
	if t == nil {
		return nil
	}
	have := t.load()
	for name, r := range have {
		made := rings[name].Planned && rings[name].Key == r.Trying
		if r.Trying != "" && (t.fresh[name] || made && (t.unmade[name] || r.Idle)) {
			r.Since, r.Idle = t.now(), false
			t.watch(r.Since)
		}
		have[name], t.unmade[name] = r, !made
	}
	clear(t.fresh)
	return t.records.Save(have)
}

// proven leaves out of what a plan can go back to what has not stood its trial; before stays in its place.
func (t *Trials) proven(good, before v1.NodeCaptureSpec) v1.NodeCaptureSpec {
	if t == nil {
		return good
	}
	have := t.load()
	for i := len(good.Rings) - 1; i >= 0; i-- {
		ring := good.Rings[i]
		if r := have[ring.Name]; r.Trying == "" || r.Trying != plan.TryKey(ring) {
			continue
		}
		last := slices.IndexFunc(before.Rings, func(b v1.NodeRing) bool { return b.Name == ring.Name && b.UID == ring.UID })
		if last >= 0 {
			good.Rings[i] = before.Rings[last]
		} else {
			good.Rings = slices.Delete(good.Rings, i, i+1)
		}
	}
	return good
}

// unfinished is the spec with which a trial was begun in this boot that is lost by now.
func (t *Trials) unfinished() (v1.NodeCaptureSpec, int64, bool) {
	if t == nil {
		return v1.NodeCaptureSpec{}, 0, false
	}
	if _, err := t.refused(); err != nil {
		slog.Error("What was tried on this node cannot be noted", "error", err)
		return v1.NodeCaptureSpec{}, 0, false
	}
	for _, r := range t.load() {
		if r.Trying == "" && r.Spec != nil && r.BootID == t.bootID {
			return *r.Spec, r.Generation, true
		}
	}
	return v1.NodeCaptureSpec{}, 0, false
}
