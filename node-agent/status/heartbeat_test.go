// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// newBeatingLab is a lab with a node that renews its Lease each 50 seconds.
func newBeatingLab(t *testing.T, objects ...client.Object) *lab {
	t.Helper()
	l := newLab(t, objects...)
	l.writer.Heartbeat = &Heartbeat{
		Client: l.writer.Client, Namespace: "ringcap-system", Timeout: time.Minute,
		Pause: func() time.Duration { return 50 * time.Second }, Note: func(err error) { l.told = err },
	}
	return l
}

func (l *lab) lease() coordinationv1.Lease {
	l.t.Helper()
	var lease coordinationv1.Lease
	require.NoError(l.t, l.writer.Cached.Get(context.Background(), client.ObjectKey{Namespace: "ringcap-system", Name: "ringcap-agent-n1"}, &lease))
	return lease
}

func n1() *v1.NodeCapture {
	return &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}}
}

// While its Lease is renewed, a node's status is written every five minutes; when that fails for long, once a minute,
// before the operator takes the node for silent.
func TestWithALeaseAStatusIsWrittenEveryFiveMinutes(t *testing.T) {
	l := newBeatingLab(t, n1())
	run := func(seconds int) (beats, writes int) {
		beats, writes = l.beats, l.writes
		for second := range seconds {
			l.write(time.Second, input(count(uint64(second))))
		}
		return l.beats - beats, l.writes - writes
	}
	l.write(0, input())
	assert.Equal(t, []int{1, 1}, []int{l.writes, l.beats})
	assert.Equal(t, l.now.UnixMicro(), l.lease().Spec.RenewTime.UnixMicro())
	beats, writes := run(3000)
	assert.Equal(t, []int{60, 10}, []int{beats, writes})

	l.failBeat = errors.New("no right")
	last := l.now
	require.LessOrEqual(t, last.Sub(l.lease().Spec.RenewTime.Time), 50*time.Second)
	run(119)
	require.ErrorContains(t, l.told, "renew Lease ringcap-system/ringcap-agent-n1: no right")
	_, writes = run(481)
	assert.GreaterOrEqual(t, writes, 8)
	assert.InDelta(t, 12, l.missed, 1, "no more often than it is renewed")
	assert.Less(t, l.now.Sub(l.read().ObservedTime.Time), 61*time.Second)

	l.failBeat = nil
	beats, writes = run(300)
	assert.Equal(t, 6, beats)
	assert.LessOrEqual(t, writes, 3)
	require.NoError(t, l.told)
}

// The operator hears of a node at no time less than every three minutes, whenever renewals begin to fail.
func TestANodeWhoseLeaseFailsIsNotSilent(t *testing.T) {
	for wait := 1; wait <= 300; wait += 23 {
		l := newBeatingLab(t, n1())
		for range wait {
			l.write(time.Second, input())
		}
		l.failBeat = errors.New("no right")
		for range 200 {
			l.write(time.Second, input())
			heard := l.read().ObservedTime.Time
			if renewed := l.lease().Spec.RenewTime.Time; renewed.After(heard) {
				heard = renewed
			}
			require.Less(t, l.now.Sub(heard), 150*time.Second, "after %d s", wait)
		}
	}
}

// A renewed Lease means that the status still holds. It is not renewed while the status cannot be written, nor without a
// NodeCapture.
func TestWithoutAStatusThereIsNoHeartbeat(t *testing.T) {
	l := newBeatingLab(t, n1())
	l.fail = errors.New("refused")
	for range 10 {
		l.now = l.now.Add(10 * time.Second)
		require.Error(t, l.writer.Write(context.Background(), input()))
	}
	assert.Zero(t, l.beats)

	l = newBeatingLab(t)
	l.write(0, input())
	assert.Zero(t, l.beats)
}
