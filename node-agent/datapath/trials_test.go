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

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// trialLab is a node with an agent and a machine that start again and again, over one disk, by a clock of its own.
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

// restart starts another process of the agent, which finds the engine's objects. In another boot it finds none.
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
	verdict := report.Rings[spec.Rings[0].Name]
	return verdict.Reason, verdict.Message
}

// captures reports whether the ring is in the engine.
func (l *trialLab) captures() bool { return l.engine.rings["own"] }

// inMode is a ring in a transparent mode; others are other specs of it.
func inMode(mode, other v1.TransparentMode) v1.NodeCaptureSpec {
	s := spec("own")
	s.Rings[0].UID, s.Rings[0].Spec.TransparentMode = "uid", &mode
	s.Rings[0].Spec.NIC.Driver.LinkTimeout.Duration = time.Duration(other) * time.Second
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
		"and it was undone; it is not tried again on this node until the ring's spec changes: its interfaces, direction, engine, xdp, "+
		"transparentMode, transparentFallback, nodeTraffic, or nic's vlanOffload, rxRingSize, rxQueues or driver", message)
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

// A ring on trial is undone in time even if the agent dies and the next agent cannot read the NodeCapture.
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
		assert.Equal(t, v1.ReasonNodeCutOff, report.Rings["own"].Reason)
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
	l.engine.refuse["own"] = errors.New("the verifier refuses it")
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

// An unsupported change costs only the trial's time. What was there before is captured all the time, by each agent.
func TestWhatIsNotSupportedStandsNoTrial(t *testing.T) {
	l := newTrialLab(t)
	for i, boot := range []string{"boot", "boot", "another boot"} {
		l.restart(boot)
		l.engine.noXDP = true
		l.r.Accepted.Records.Path = filepath.Join(filepath.Dir(l.file), "accepted.json")
		if i == 0 {
			l.reconcile(inMode(0, 100))
		}
		for range 2 {
			reason, message := l.reconcile(inMode(2, 100))
			assert.Equal(t, v1.ReasonUnsupported, reason, boot)
			assert.Contains(t, message, "no native XDP: not supported by this engine; the change is tried again when it is edited, or when the agent restarts; until then it stays as it was before the change")
			assert.True(t, l.captures())
			l.pass(60)
		}
	}
}

// A change may be planned only because another ring's change is not supported. It is on trial like any other.
func TestWhatIsPlannedForWantOfSupportStandsItsTrial(t *testing.T) {
	l := newTrialLab(t)
	engine := &choosyEngine{planEngine: &planEngine{memoryEngine: l.engine}, message: func(r capture.Ring) string {
		if r.SnapLen == 1000 {
			return "no such length"
		}
		return ""
	}}
	l.r.Providers[0].Open = func(context.Context) (capture.Engine, error) { return engine, nil }
	asked := spec("many")
	asked.Rings[0].Spec.Queues = v1.Queues(8)
	l.reconcile(asked)
	asked.Rings[0].Spec.Queues, asked.Rings[0].Spec.SnapLength = v1.Queues(2), 1000
	asked.Rings = append(inMode(2, 100).Rings, asked.Rings[0])
	asked.Rings[0].Spec.Filter = &v1.Filter{Rules: []v1.Rule{{Action: v1.RuleQueue, Queue: &v1.QueueReference{Cluster: "many", Queue: 5}}}}
	reason, message := l.reconcile(asked)
	assert.Empty(t, reason, message)
	assert.True(t, l.captures())
	l.lost = true
	l.pass(32)
	reason, _ = l.reconcile(asked)
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

// Rings that an agent of the previous release left running are not on trial, whether the API server answers or not.
// That agent recorded nothing.
func TestWhatRunsAtTheUpgradeIsOnNoTrial(t *testing.T) {
	for _, lost := range []bool{false, true} {
		l := newTrialLab(t)
		l.engine.rings["own"], l.lost = true, lost
		reason, message := l.reconcile(inMode(2, 100))
		assert.Empty(t, reason, message)
		l.lost = true
		l.pass(60)
		l.restart("boot")
		reason, message = l.reconcile(inMode(2, 100))
		assert.Empty(t, reason, message)
		assert.True(t, l.captures())
		assert.Zero(t, l.asked)
		l.lost = false
		l.reconcile(inMode(2, 101))
		l.lost = true
		l.pass(30)
		reason, _ = l.reconcile(inMode(2, 101))
		assert.Equal(t, v1.ReasonNodeCutOff, reason, "a change is on trial")
		assert.True(t, l.captures(), "and what ran before comes back")
	}
}

// They also continue if the node is inspected once more, because another ring's driver was replaced.
func TestWhatRunsAtTheUpgradeGoesOnWhenInterfacesMove(t *testing.T) {
	l := newTrialLab(t)
	l.engine.rings["own"], l.engine.taps = true, []capture.Tap{{Index: 2}}
	l.r.Traffic = func() (map[string]string, error) { return map[string]string{"eth0": "has a default route"}, nil }
	l.r.Drivers = movingDrivers{}
	for range 2 {
		reason, message := l.reconcile(inMode(2, 100))
		assert.Empty(t, reason, message)
		assert.True(t, l.captures())
	}
}

// These rings are on trial although the engine has them: one that came after the first inspection, and one that was
// on trial when the file of trials became unreadable.
func TestWhatIsOnTrialAllTheSame(t *testing.T) {
	l := newTrialLab(t)
	l.reconcile(spec("other"))
	l.engine.rings["own"] = true
	l.lost = true
	reason, _ := l.reconcile(inMode(2, 100))
	assert.Equal(t, v1.ReasonAPIServerUnreachable, reason, "later than at the first look")

	l = newTrialLab(t)
	l.reconcile(inMode(2, 100))
	require.NoError(t, os.WriteFile(l.file, []byte("{"), 0o644))
	l.restart("boot")
	l.reconcile(inMode(2, 100))
	l.lost = true
	l.pass(32)
	reason, _ = l.reconcile(inMode(2, 100))
	assert.Equal(t, v1.ReasonNodeCutOff, reason)
}

// The key of another release may differ. What was accepted and runs stays while the API server is silent, and is
// tried afterwards.
func TestWhatRunsStaysWithoutAnAPIServer(t *testing.T) {
	l := newTrialLab(t)
	l.reconcile(inMode(2, 100))
	l.pass(32)
	l.reconcile(inMode(2, 100))
	l.r.Trials.have["own"] = trial{Proven: "by another release"}
	l.lost = true
	reason, message := l.reconcile(inMode(2, 100))
	assert.Empty(t, reason, message)
	assert.True(t, l.captures())
	l.lost = false
	l.reconcile(inMode(2, 100))
	assert.NotEmpty(t, l.r.Trials.have["own"].Trying)
}

// A spec that the engine refused was never active: a boot of the machine does not count against it.
func TestABootDoesNotEndAnIdleTrial(t *testing.T) {
	l := newTrialLab(t)
	l.engine.refuse["own"] = errors.New("the verifier refuses it")
	l.reconcile(inMode(2, 100))
	l.pass(60)
	l.reconcile(inMode(2, 100))
	l.restart("another boot")
	reason, message := l.reconcile(inMode(2, 100))
	assert.Empty(t, reason, message)
	assert.True(t, l.captures())
	l.lost = true
	l.pass(30)
	reason, _ = l.reconcile(inMode(2, 100))
	assert.Equal(t, v1.ReasonNodeCutOff, reason, "it is tried")
}

// A spec that nobody asks for any more is on trial no more.
func TestAnEditEndsATrial(t *testing.T) {
	l := newTrialLab(t)
	l.reconcile(inMode(2, 100))
	l.reconcile(inMode(0, 100))
	l.restart("another boot")
	reason, message := l.reconcile(inMode(2, 100))
	assert.Empty(t, reason, message)
}

// The clock of a trial is one that nobody sets: the time in the file is only for the next agent.
func TestAClockThatIsSetBack(t *testing.T) {
	setBack := func(l *trialLab) {
		have, err := l.r.Trials.records.Load()
		require.NoError(t, err)
		r := have["own"]
		r.Since = r.Since.Add(time.Hour)
		have["own"] = r
		require.NoError(t, l.r.Trials.records.Save(have))
	}
	for _, restart := range []bool{false, true} {
		for _, lost := range []bool{false, true} {
			l := newTrialLab(t)
			l.reconcile(inMode(2, 100))
			setBack(l)
			if restart {
				l.restart("boot")
			} else if r, ok := l.r.Trials.have["own"]; ok {
				r.Since = r.Since.Add(time.Hour)
				l.r.Trials.have["own"] = r
			}
			l.reconcile(inMode(2, 100))
			l.lost = lost
			l.pass(32)
			assert.True(t, l.r.Trials.over())
			reason, _ := l.reconcile(inMode(2, 100))
			assert.Equal(t, lost, reason == v1.ReasonNodeCutOff)
			assert.Empty(t, l.r.Trials.have["own"].Trying, "it is decided")
		}
	}
}

// A lost trial is undone even if the disk is full, or if something else cannot be read.
func TestALostTrialIsUndoneWhateverFails(t *testing.T) {
	for name, fail := range map[string]func(*trialLab){
		"Save": func(l *trialLab) {
			require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(l.file), ".trials.json.new"), 0o755))
		},
		"Traffic": func(l *trialLab) {
			l.r.Traffic = func() (map[string]string, error) { return nil, errors.New("netlink is busy") }
		},
		"Describe": func(l *trialLab) {
			l.r.Drivers = noDrivers{errors.New("sysfs is busy")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTrialLab(t)
			l.r.Traffic = func() (map[string]string, error) { return nil, nil }
			l.r.Drivers = noDrivers{}
			other := spec("other")
			asked := inMode(2, 100)
			asked.Rings = append(asked.Rings, other.Rings...)
			l.reconcile(asked)
			fail(l)
			l.lost = true
			l.pass(30)
			for range 2 {
				report := l.r.Reconcile(context.Background(), asked, 1)
				assert.Error(t, report.Err)
				assert.Equal(t, v1.ReasonNodeCutOff, report.Rings["own"].Reason)
				assert.Equal(t, map[string]bool{"other": true}, l.engine.rings)
			}
		})
	}
}

// noDrivers replaces none.
type noDrivers struct{ err error }

func (d noDrivers) Describe() (map[string]plan.DriverFact, error)     { return nil, d.err }
func (d noDrivers) Apply(map[string]plan.DesiredDriver) (bool, error) { return false, nil }

// movingDrivers makes an interface again each time.
type movingDrivers struct{ noDrivers }

func (d movingDrivers) Apply(map[string]plan.DesiredDriver) (bool, error) { return true, nil }

// If several trials failed, the latest spec is undone. A trial that cannot be decoded does not count.
func TestTheLatestUnfinishedSpec(t *testing.T) {
	l := newTrialLab(t)
	l.r.Trials.have = map[string]trial{}
	for generation, name := range []string{"a", "b", "c", "d"} {
		s := spec(name)
		l.r.Trials.have[name] = trial{Refused: name, BootID: "boot", Spec: &s, Generation: int64(generation)}
	}
	l.r.Trials.have["d"].Spec.Undecodable = "a text for a number"
	for range 20 {
		s, generation, lost := l.r.Trials.unfinished()
		require.True(t, lost)
		assert.Equal(t, int64(2), generation)
		assert.Equal(t, "c", s.Rings[0].Name)
	}
}

// If an operator of the previous release wrote the entry, nobody could allow a ring on the node's own interface. The
// ring continues.
func TestTheNodesOwnTrafficAtTheUpgrade(t *testing.T) {
	own := func() (map[string]string, error) { return map[string]string{"eth0": "has a default route"}, nil }
	for _, version := range []int32{0, 1} {
		l := newTrialLab(t)
		l.r.Traffic, l.engine.rings["own"], l.engine.taps = own, true, []capture.Tap{{Interface: "eth0", Index: 2}}
		asked := inMode(2, 100)
		asked.Rings[0].Version = version
		for range 2 {
			reason, message := l.reconcile(asked)
			assert.Equal(t, version == 1, reason == v1.ReasonNodeTrafficRefused, message)
			assert.True(t, l.captures())
		}
		l.engine.rings["own"] = false
		l.engine = newMemoryEngine()
		l.restart("another boot")
		l.r.Traffic = own
		reason, _ := l.reconcile(asked)
		assert.Equal(t, v1.ReasonNodeTrafficRefused, reason)
		assert.False(t, l.captures())
	}
}

// Run wakes the loop once a second at most, also if that does not act.
func TestRunPacesItself(t *testing.T) {
	l := newTrialLab(t)
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	told := 0
	go l.r.Trials.Run(ctx)
	for l.r.Trials.began.Raise(); ; l.r.Trials.began.Raise() {
		select {
		case <-l.r.Trials.Changed:
			told++
		case <-ctx.Done():
			assert.Equal(t, 1, told)
			return
		}
	}
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
