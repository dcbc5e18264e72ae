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

// Trials protect the node's network. A ring that can cut the node off is undone when the API server is lost right
// after it was applied, and is not tried again until its spec changes. A ring that passed its trial stays when the
// API server is lost later.
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
	// Reach sends any request to the API server. nil means that it answered.
	Reach func(context.Context) error
	// Within is how long the API server may be silent.
	Within time.Duration
	// Changed wakes the loop when a trial is over.
	Changed Signal

	// records stores have, which is by ring and nil before it is read. A record that cannot be written still counts
	// in this process. damaged means that the record of an earlier process could not be read.
	records node.Records[trial]
	have    map[string]trial
	damaged bool
	bootID  string
	now     func() time.Time
	began   Signal
	// fresh holds the rings on trial that were admitted and must be applied. unmade holds those that were not
	// planned, or that their engine refused.
	fresh, unmade map[string]bool

	mu sync.Mutex
	// from is when something was last applied, or when this process began, which needs time to ask.
	from time.Time
	// since is when what is on trial was made, by ring. It is of the monotonic clock, which cannot be set. The
	// records' times are not.
	since map[string]time.Time
	// answered is when the API server was asked the question that it answered last.
	answered time.Time
}

// trial is what a node knows of a ring that can cut it off. It refers to specs by key, as plan.TryKey makes them.
type trial struct {
	// Proven passed its trial last. Refused did not pass, with the reason.
	Proven  string `json:"proven,omitempty"`
	Refused string `json:"refused,omitempty"`
	Why     string `json:"why,omitempty"`
	// Trying is on trial because of Watched, which the ring does. Since is when it was applied, BootID in which boot.
	Trying  string    `json:"trying,omitempty"`
	Watched string    `json:"watched,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	BootID  string    `json:"bootID,omitempty"`
	// Idle means that nothing was lost and nothing proven, because the ring could not be made.
	Idle bool `json:"idle,omitempty"`
	// Spec of the node and its generation. They are kept while the trial runs, or if it was lost and may have to be
	// undone. An agent that starts without an API server has no other spec.
	Spec       *v1.NodeCaptureSpec `json:"spec,omitempty"`
	Generation int64               `json:"generation,omitempty"`
}

// NewTrials makes Trials that keep their state in a file. The file must outlive a boot.
func NewTrials(path, bootID string, within time.Duration, reach func(context.Context) error, changed Signal) *Trials {
	return &Trials{
		Reach: reach, Within: within, Changed: changed, records: node.Records[trial]{Path: path}, bootID: bootID,
		now: time.Now, began: NewSignal(), from: time.Now(), fresh: map[string]bool{}, unmade: map[string]bool{},
		since: map[string]time.Time{},
	}
}

// Run asks the API server while something is on trial, until ctx ends. It raises Changed at most once a second, even
// if the loop does not act on it.
func (t *Trials) Run(ctx context.Context) {
	const (
		asks = 15
		rest = time.Second
	)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.began:
		}
		for !t.over() {
			if err := t.ask(ctx); err != nil {
				slog.Warn("The API server does not answer; a ring on trial may be the cause", "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(t.Within / asks):
			}
		}
		t.Changed.Raise()
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}

// ask records an answer with the time of the question.
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

// over reports whether no more answers are needed, because judge ends all trials.
func (t *Trials) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.silent() {
		return true
	}
	for _, since := range t.since {
		if !t.stood(since) {
			return false
		}
	}
	return true
}

// stood reports whether the API server answered after a trial's time. The lock is held.
func (t *Trials) stood(since time.Time) bool { return !t.answered.Before(since.Add(t.Within)) }

// silent reports whether the API server has not answered for too long since something was applied. The lock is held.
func (t *Trials) silent() bool {
	since := t.from
	if t.answered.After(since) {
		since = t.answered
	}
	return t.now().Sub(since) >= t.Within
}

// watch starts or continues to ask the API server for what was applied.
func (t *Trials) watch(name string, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if since.After(t.from) {
		t.from = since
	}
	t.since[name] = since
	t.began.Raise()
}

// appliedAt returns when something on trial was made. For objects of an earlier process this is the time of a clock
// that may have been set back since.
func (t *Trials) appliedAt(name string, r trial) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if since, known := t.since[name]; known {
		return since
	}
	if now := t.now(); r.Since.After(now) {
		return now
	}
	return r.Since
}

// load reads the records. It sets a file aside that cannot be read. Its rings are then on trial once more, which
// protects the node.
func (t *Trials) load() map[string]trial {
	if t.have != nil {
		return t.have
	}
	have, err := t.records.Load()
	if err != nil {
		aside := Aside(t.records.Path)
		slog.Error("The record of trials cannot be read; what failed may be tried again. The file is set aside",
			"error", errors.Join(err, os.Rename(t.records.Path, aside)), "aside", aside)
		have, t.damaged = map[string]trial{}, true
	}
	t.have = have
	return have
}

// save writes the records for the next process.
func (t *Trials) save() error { return t.records.Save(t.have) }

// set records what is known of a ring now.
func (t *Trials) set(name string, r trial) {
	t.have[name] = r
	if r == (trial{}) {
		delete(t.have, name)
	}
	if r.Trying == "" || r.Idle {
		t.mu.Lock()
		delete(t.since, name)
		t.mu.Unlock()
	}
}

// knows reports whether there is a record of a ring, or may have been one.
func (t *Trials) knows(name string) bool {
	if t == nil {
		return false
	}
	_, known := t.load()[name]
	return known || t.damaged
}

// forget removes rings that are no longer in the spec, and what was kept while no spec was known.
func (t *Trials) forget(spec v1.NodeCaptureSpec) error {
	if t == nil {
		return nil
	}
	have := t.load()
	for name, r := range have {
		if !slices.ContainsFunc(spec.Rings, func(ring v1.NodeRing) bool { return ring.Name == name }) {
			r = trial{}
		}
		if r.Trying == "" {
			r.Spec, r.Generation = nil, 0
		}
		t.set(name, r)
	}
	return t.save()
}

// refused ends the trials that are over, and returns the refused rings. It returns them even if the records cannot be
// written.
func (t *Trials) refused() (map[string]plan.Refusal, error) {
	if t == nil {
		return nil, nil
	}
	refused := map[string]plan.Refusal{}
	for name, r := range t.load() {
		r = t.judge(name, r)
		t.set(name, r)
		if r.Refused != "" {
			refused[r.Refused] = plan.Refusal{Reason: v1.ReasonNodeCutOff, Message: r.Why}
		}
	}
	return refused, t.save()
}

// judge ends one trial if it is over.
func (t *Trials) judge(name string, r trial) trial {
	since := t.appliedAt(name, r)
	t.mu.Lock()
	silent, stood := t.silent(), t.stood(since)
	t.mu.Unlock()
	switch {
	case r.Trying == "":
	case r.Idle && r.BootID != t.bootID:
		return r.dropped()
	case r.BootID != t.bootID:
		return r.lose(name, "the machine was booted while it was tried")
	case r.Idle:
	case stood && t.unmade[name]:
		r.Idle = true
	case stood:
		slog.Info("A ring has passed its trial: the API server still answers", "ring", name, "what", r.Watched)
		return trial{Proven: r.Trying, Refused: r.Refused, Why: r.Why}
	case silent:
		return r.lose(name, fmt.Sprintf("the API server could not be reached for %s after that was applied, at %s, and it was undone",
			t.Within, r.Since.UTC().Format(time.RFC3339)))
	default:
		t.watch(name, since)
	}
	return r
}

// dropped returns what is known without the trial, which had no result.
func (r trial) dropped() trial { return trial{Proven: r.Proven, Refused: r.Refused, Why: r.Why} }

func (r trial) lose(name, why string) trial {
	slog.Error("A ring may have cut this node off, and is undone", "ring", name, "what", r.Watched, "why", why)
	r.Refused, r.Trying = r.Trying, ""
	r.Why = fmt.Sprintf("%s: %s; it is not tried again on this node until the ring's spec changes: "+
		"its interfaces, direction, engine, xdp, transparentMode, transparentFallback, nodeTraffic, or nic's vlanOffload, rxRingSize, rxQueues or driver",
		r.Watched, why)
	return r
}

// admit begins the trials of planned rings that were never tried. It returns what cannot be tried now, and the plan
// must be made again without that. At the agent's first inspection, what runs already counts as proven, because an
// agent of a release without trials left it. Also, what runs as the spec asks is not removed because it cannot be
// tried.
func (t *Trials) admit(ctx context.Context, report Report, facts plan.Facts, first bool) (held map[string]plan.Refusal, failed error) {
	if t == nil {
		return nil, nil
	}
	held = map[string]plan.Refusal{}
	asked, before := false, map[string]trial{}
	var silence error
	for name, verdict := range report.Plan.Rings {
		r, known := t.load()[name]
		if verdict.Watched == "" || r.Proven == verdict.Key || r.Trying == verdict.Key {
			continue
		}
		if first && !known && !t.damaged && verdict.Planned && facts.Runs(name, verdict.Key) {
			slog.Info("A ring of an older agent runs without a trial", "ring", name, "what", verdict.Watched)
			t.set(name, trial{Proven: verdict.Key})
			continue
		}
		if !asked {
			asked, silence = true, t.ask(ctx)
		}
		if silence != nil {
			hold(held, facts, name, verdict, v1.ReasonAPIServerUnreachable, fmt.Sprintf(
				"would not notice while it cannot reach the API server (%v): it is tried when it can", silence))
			continue
		}
		before[name] = r
		r.Trying, r.Watched, r.Since, r.BootID, r.Idle = verdict.Key, verdict.Watched, t.now(), t.bootID, false
		r.Spec, r.Generation = report.Spec.DeepCopy(), report.Generation
		t.set(name, r)
		t.fresh[name] = true
	}
	if failed = t.save(); failed == nil {
		return held, nil
	}
	for name, r := range before {
		t.set(name, trial{})
		t.set(name, r)
		delete(t.fresh, name)
		hold(held, facts, name, report.Plan.Rings[name], v1.ReasonEngineError,
			fmt.Sprintf("what is tried cannot be noted (%v): it is tried when it can", failed))
	}
	return held, failed
}

// hold adds what cannot be tried now, unless it already runs as the spec asks. A ring that may be captured in mode 0
// without a capture-aware driver may run in that mode.
func hold(held map[string]plan.Refusal, facts plan.Facts, name string, verdict plan.Verdict, reason, why string) {
	if verdict.Planned && facts.Runs(name, verdict.Key) && verdict.Fallback != v1.TransparentFallbackStack {
		return
	}
	held[verdict.Key] = plan.Refusal{Reason: reason, Message: fmt.Sprintf(
		"%s: the node could be cut off by that, and %s", verdict.Watched, why)}
}

// applied gets the outcome of the plan. The time of a trial runs from when the ring was made. A ring that is neither
// asked for nor planned is no longer on trial.
func (t *Trials) applied(report Report) error {
	if t == nil {
		return nil
	}
	for name, r := range t.load() {
		ring := report.Rings[name]
		made := ring.Made && ring.Decision.Key == r.Trying
		switch {
		case r.Trying == "":
		case ring.Decision.Key != r.Trying && asksOther(report.Spec, name, r.Trying):
			r = r.dropped()
		case t.fresh[name] || made && (t.unmade[name] || r.Idle):
			r.Since, r.Idle = t.now(), false
			t.watch(name, r.Since)
		}
		t.set(name, r)
		t.unmade[name] = !made
	}
	clear(t.fresh)
	return t.save()
}

// asksOther reports whether the spec has the ring with another key.
func asksOther(spec v1.NodeCaptureSpec, name, key string) bool {
	i := slices.IndexFunc(spec.Rings, func(ring v1.NodeRing) bool { return ring.Name == name })
	return i >= 0 && plan.TryKey(spec.Rings[i]) != key
}

// proven removes from good what has not passed its trial, and keeps the previous spec instead.
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

// unfinished returns the latest spec that began a trial in this boot which is now lost.
func (t *Trials) unfinished() (spec v1.NodeCaptureSpec, generation int64, lost bool) {
	if t == nil {
		return spec, 0, false
	}
	if _, err := t.refused(); err != nil {
		slog.Error("The record of trials cannot be written", "error", err)
	}
	for _, r := range t.load() {
		if r.Trying == "" && r.Spec != nil && r.Spec.Undecodable == "" && r.BootID == t.bootID && (!lost || r.Generation > generation) {
			spec, generation, lost = *r.Spec, r.Generation, true
		}
	}
	return spec, generation, lost
}
