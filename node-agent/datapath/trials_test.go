// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// trialLab is a node whose agent and machine start again and again, over one disk, by a clock of its own.
type trialLab struct {
	*testing.T
	file   string
	now    time.Time
	engine *memoryEngine
	r      *Reconciler
	// lost: the API server does not answer. asked is how often it was asked.
	lost  bool
	asked int
}

func newTrialLab(t *testing.T) *trialLab {
	l := &trialLab{T: t, file: filepath.Join(t.TempDir(), "trials.json"), now: time.Unix(1e9, 0).UTC(), engine: newMemoryEngine()}
	l.restart("boot")
	return l
}

// restart makes another process of the agent, which finds what is in the engine; another boot's finds nothing there.
func (l *trialLab) restart(boot string) {
	if l.r != nil && l.r.Trials.bootID != boot {
		l.engine = newMemoryEngine()
	}
	l.r = newReconciler(l.engine)
	l.r.Trials = NewTrials(l.file, boot, 30*time.Second, func(context.Context) error {
		l.asked++
		if l.lost {
			return errors.New("no route to host")
		}
		return nil
	}, NewSignal())
	l.r.Trials.now, l.r.Trials.from = func() time.Time { return l.now }, l.now
}

// pass lets time go by as the agent's own goroutine sees it.
func (l *trialLab) pass(seconds int) {
	for range seconds / 2 {
		l.now = l.now.Add(2 * time.Second)
		if !l.r.Trials.over() {
			_ = l.r.Trials.ask(context.Background())
		}
	}
}

// reconcile returns the verdict of the only ring.
func (l *trialLab) reconcile(spec v1.NodeCaptureSpec) (reason, message string) {
	l.Helper()
	report := l.r.Reconcile(context.Background(), spec, 1)
	require.NoError(l, report.Err)
	verdict := report.Plan.Rings[spec.Rings[0].Name]
	return verdict.Reason, verdict.Message
}

// captures says whether the ring is in the engine.
func (l *trialLab) captures() bool { return l.engine.rings["own"] }

// inMode is a ring in a transparent mode.
func inMode(mode, snapLength int32) v1.NodeCaptureSpec {
	s := spec("own")
	s.Rings[0].UID, s.Rings[0].Spec.TransparentMode, s.Rings[0].Spec.SnapLength = "uid", &mode, snapLength
	return s
}

func TestWhatStandsItsTrialStays(t *testing.T) {
	l := newTrialLab(t)
	reason, _ := l.reconcile(inMode(2, 100))
	assert.Empty(t, reason)
	assert.True(t, l.captures())
	l.pass(10)
	l.lost = true
	l.pass(26)
	l.lost = false
	l.pass(60)
	reason, _ = l.reconcile(inMode(2, 100))
	assert.Empty(t, reason, "an outage that is shorter than the time")
	asked := l.asked

	l.lost = true
	l.pass(3600)
	reason, _ = l.reconcile(inMode(2, 100))
	assert.Empty(t, reason, "the API server is merely down")
	l.restart("boot")
	reason, _ = l.reconcile(inMode(2, 100))
	assert.Empty(t, reason, "and the agent starts again")
	l.restart("another boot")
	reason, _ = l.reconcile(inMode(2, 100))
	assert.Empty(t, reason, "and the machine boots")
	assert.True(t, l.captures())
	assert.Equal(t, asked, l.asked, "nobody is asked without a trial")
}

func TestWhatCutsTheNodeOffIsUndone(t *testing.T) {
	l := newTrialLab(t)
	l.reconcile(inMode(2, 100))
	l.lost = true
	l.pass(28)
	reason, _ := l.reconcile(inMode(2, 100))
	assert.Empty(t, reason)
	assert.True(t, l.captures())
	l.pass(2)
	reason, message := l.reconcile(inMode(2, 100))
	assert.Equal(t, v1.ReasonNodeCutOff, reason)
	assert.Equal(t, "spec.transparentMode 2 on eth0: the API server could not be reached for 30s after that was applied, at 2001-09-09T01:46:40Z, "+
		"and it was undone; it is not tried again on this node until the ring's spec changes", message)
	assert.False(t, l.captures())

	l.lost = false
	for _, boot := range []string{"boot", "another boot"} {
		l.pass(3600)
		reason, _ = l.reconcile(inMode(2, 100))
		assert.Equal(t, v1.ReasonNodeCutOff, reason)
		l.restart(boot)
	}
	reason, _ = l.reconcile(inMode(2, 100))
	assert.Equal(t, v1.ReasonNodeCutOff, reason)
	assert.False(t, l.captures())

	reason, _ = l.reconcile(inMode(2, 101))
	assert.Empty(t, reason, "another spec is tried")
	assert.True(t, l.captures())
	l.pass(32)
	l.reconcile(inMode(2, 101))
	reason, _ = l.reconcile(inMode(2, 100))
	assert.Equal(t, v1.ReasonNodeCutOff, reason, "and the one before still is not")
	assert.True(t, l.captures(), "but what has stood its trial stays")

	report := l.r.Reconcile(context.Background(), v1.NodeCaptureSpec{}, 1)
	require.NoError(t, report.Err)
	assert.NoFileExists(t, l.file)
}

// What was there before the change comes back, and is not on trial itself.
func TestWhatWasThereBeforeATrialComesBack(t *testing.T) {
	l := newTrialLab(t)
	l.reconcile(inMode(0, 100))
	l.reconcile(inMode(2, 100))
	l.lost = true
	l.pass(30)
	reason, message := l.reconcile(inMode(2, 100))
	assert.Equal(t, v1.ReasonNodeCutOff, reason)
	assert.Contains(t, message, "until then it stays as it was before the change")
	assert.True(t, l.captures())
	report := l.r.Reconcile(context.Background(), inMode(2, 100), 1)
	assert.Zero(t, report.Plan.Plans[v1.EngineEBPF].Rings[0].Mode)
}

func TestNothingIsTriedWithoutAnAPIServer(t *testing.T) {
	l := newTrialLab(t)
	l.lost = true
	reason, message := l.reconcile(inMode(2, 100))
	assert.Equal(t, v1.ReasonAPIServerUnreachable, reason)
	assert.Contains(t, message, "spec.transparentMode 2 on eth0: the node could be cut off by that")
	assert.Contains(t, message, "no route to host")
	assert.False(t, l.captures())
	l.reconcile(inMode(0, 100))
	reason, _ = l.reconcile(inMode(2, 100))
	assert.Equal(t, v1.ReasonAPIServerUnreachable, reason)
	assert.True(t, l.captures(), "what was there before stays")
	l.lost = false
	reason, _ = l.reconcile(inMode(2, 100))
	assert.Empty(t, reason)
	l.reconcile(inMode(0, 100))
	reason, _ = l.reconcile(inMode(0, 100))
	assert.Empty(t, reason, "mode 0 is not tried")
}

// An agent that dies while something is on trial, and whose successor cannot ask what is wanted, is no way around.
func TestATrialOutlivesTheAgent(t *testing.T) {
	l := newTrialLab(t)
	asked := inMode(2, 100)
	other := spec("other")
	asked.Rings = append(asked.Rings, other.Rings...)
	l.reconcile(asked)
	l.lost = true
	l.pass(20)
	l.restart("boot")
	l.r.Adopt(context.Background())
	_, undone := l.r.Undo(context.Background())
	assert.False(t, undone, "it has not had the time to ask")
	l.pass(30)
	for range 2 {
		report, undone := l.r.Undo(context.Background())
		require.True(t, undone)
		assert.Equal(t, v1.ReasonNodeCutOff, report.Plan.Rings["own"].Reason)
		assert.Equal(t, map[string]bool{"other": true}, l.engine.rings, "the others go on")
		l.restart("boot")
		l.r.Adopt(context.Background())
	}
	l.lost = false
	reason, _ := l.reconcile(asked)
	assert.Equal(t, v1.ReasonNodeCutOff, reason)
	_, undone = l.r.Undo(context.Background())
	assert.False(t, undone, "what is wanted is known")
}

func TestATrialThatIsStoodByTheNextAgent(t *testing.T) {
	l := newTrialLab(t)
	l.reconcile(inMode(2, 100))
	l.restart("boot")
	l.reconcile(inMode(2, 100))
	l.pass(32)
	l.reconcile(inMode(2, 100))
	l.lost = true
	l.pass(600)
	reason, _ := l.reconcile(inMode(2, 100))
	assert.Empty(t, reason)
}

// A machine that boots while something is on trial may have crashed for it, and would crash again.
func TestABootEndsATrial(t *testing.T) {
	l := newTrialLab(t)
	l.reconcile(inMode(2, 100))
	l.restart("another boot")
	_, undone := l.r.Undo(context.Background())
	assert.False(t, undone, "there is nothing to undo")
	reason, message := l.reconcile(inMode(2, 100))
	assert.Equal(t, v1.ReasonNodeCutOff, reason)
	assert.Contains(t, message, "the machine was booted while it was tried")
}

// What the engine refuses has proven nothing: when it can be made, its trial begins.
func TestWhatIsNotMadeStandsNoTrial(t *testing.T) {
	l := newTrialLab(t)
	l.engine.refuse["own"] = errors.New("the verifier says no")
	l.reconcile(inMode(2, 100))
	l.pass(60)
	l.reconcile(inMode(2, 100))
	asked := l.asked
	l.pass(60)
	l.reconcile(inMode(2, 100))
	assert.Equal(t, asked, l.asked, "nobody is asked for ever")
	delete(l.engine.refuse, "own")
	l.reconcile(inMode(2, 100))
	assert.True(t, l.captures())
	l.lost = true
	l.pass(30)
	reason, _ := l.reconcile(inMode(2, 100))
	assert.Equal(t, v1.ReasonNodeCutOff, reason)
	assert.False(t, l.captures())
}

// A file that is none, as after a disk's failure, does not keep the node from capturing.
func TestTrialsThatCannotBeRead(t *testing.T) {
	l := newTrialLab(t)
	require.NoError(t, os.WriteFile(l.file, []byte("{"), 0o644))
	reason, _ := l.reconcile(inMode(2, 100))
	assert.Empty(t, reason)
	l.lost = true
	l.pass(30)
	reason, _ = l.reconcile(inMode(2, 100))
	assert.Equal(t, v1.ReasonNodeCutOff, reason)
}

// What cannot be noted is not tried.
func TestTrialsThatCannotBeWritten(t *testing.T) {
	l := newTrialLab(t)
	require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(l.file), ".trials.json.new"), 0o755))
	report := l.r.Reconcile(context.Background(), inMode(2, 100), 1)
	assert.ErrorContains(t, report.Err, "trials.json")
	assert.False(t, l.captures())
}

// Run asks while a trial lasts, and tells when it is over.
func TestRun(t *testing.T) {
	l := newTrialLab(t)
	l.r.Trials.now, l.r.Trials.Within = time.Now, 300*time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { l.r.Trials.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	l.reconcile(inMode(2, 100))
	for {
		select {
		case <-l.r.Trials.Changed:
			l.reconcile(inMode(2, 100))
			have, err := l.r.Trials.records.Load()
			require.NoError(t, err)
			if have["own"].Proven != "" {
				return
			}
		case <-time.After(10 * time.Second):
			require.Fail(t, "the trial is not over")
		}
	}
}
