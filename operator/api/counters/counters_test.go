// SPDX-License-Identifier: Apache-2.0

package counters

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// number gives every counter of a value another number, and every text and flag one that is not empty.
func number(v reflect.Value, next *int64) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(*next, 0))))
			return
		}
		for i := range v.NumField() {
			number(v.Field(i), next)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		number(v.Elem(), next)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		number(v.Index(0), next)
	case reflect.String:
		v.SetString("same")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		*next++
		v.SetInt(*next)
	case reflect.Int32:
		v.SetInt(1)
	default:
		panic(v.Kind().String())
	}
}

// full is a status with a value in every field.
func full(first int64) v1.NodeCaptureStatus {
	var status v1.NodeCaptureStatus
	number(reflect.ValueOf(&status).Elem(), &first)
	status.AppliedGeneration = 1
	status.Conditions[0].ObservedGeneration, status.Conditions[0].LastTransitionTime = 1, metav1.Time{}
	status.Clusters[0].MemoryBytes = 4096
	status.Clusters[0].Queues[0].ConsumerAsOf = nil
	return status
}

// A new counter in the API must be known here as one: otherwise each packet would be a change of state that is written at once.
func TestEveryNumberIsACounterOrNamedAsAState(t *testing.T) {
	assert.Equal(t, Without(full(1000)), Without(full(2000)))
	other := full(1000)
	other.Clusters[0].Queues[0].Attached = false
	assert.NotEqual(t, Without(full(1000)), Without(other))
}

// What a report carries over is all that changes with packets, and nothing about their consumers.
func TestAReportCarriesAllCounters(t *testing.T) {
	at := metav1.NewMicroTime(time.Unix(5000, 123000).UTC())
	report := Of("n1", full(2000), at)
	text, err := json.Marshal(report)
	require.NoError(t, err)
	assert.NotContains(t, string(text), `"consumer"`)
	assert.NotContains(t, string(text), `"holder"`)
	var got Report
	require.NoError(t, json.Unmarshal(text, &got))
	assert.Equal(t, at.UnixMicro(), got.Time.UnixMicro())

	status, want := full(1000), full(2000)
	got.Into(&status)
	want.ObservedTime = status.ObservedTime
	assert.Equal(t, want, status)
}

// A report that is of another moment than the status has sets that the other has not, and lists other queues.
func TestAReportOfAnotherMoment(t *testing.T) {
	queue := func(number int32, delivered int64, consumer string) v1.QueueStatus {
		return v1.QueueStatus{Queue: number, Delivered: delivered, Consumer: consumer, Attached: true}
	}
	status := v1.NodeCaptureStatus{
		Rings: []v1.NodeRingStatus{{Name: "gone", Seen: 7}, {Name: "mirror", Seen: 10, Ready: true}},
		Clusters: []v1.NodeClusterStatus{
			{Name: "gone", Queues: []v1.QueueStatus{queue(0, 1, "a/a")}},
			{Name: "ids", Ready: true, Queues: []v1.QueueStatus{queue(0, 1, "a/a"), queue(1, 1, "a/b")}, Unlisted: &v1.QueueTotals{Queues: 2, Unnamed: 1}},
		},
	}
	report := Report{
		Rings: []v1.NodeRingStatus{{Name: "mirror", Seen: 20}, {Name: "new", Seen: 1}},
		Clusters: []v1.NodeClusterStatus{{Name: "ids", Queues: []v1.QueueStatus{queue(1, 5, ""), queue(3, 6, "")},
			Unlisted: &v1.QueueTotals{Queues: 2, Delivered: 9}}},
	}
	report.Into(&status)
	assert.Equal(t, []v1.NodeRingStatus{{Name: "gone", Seen: 7}, {Name: "mirror", Seen: 20, Ready: true}}, status.Rings)
	assert.Equal(t, []v1.QueueStatus{queue(0, 1, "a/a")}, status.Clusters[0].Queues)
	assert.Equal(t, []v1.QueueStatus{queue(1, 5, "a/b"), queue(3, 6, "")}, status.Clusters[1].Queues)
	assert.Equal(t, &v1.QueueTotals{Queues: 2, Delivered: 9, Unnamed: 1}, status.Clusters[1].Unlisted)
}

// A fleet's nodes that start at once, or hear of the same change, write their counters at times of their own.
func TestBeatsAreSpread(t *testing.T) {
	const fleet = 6000
	t.Run("with a Lease", func(t *testing.T) { beatsAreSpread(t, EveryWithLease, 5*fleet) })
	beatsAreSpread(t, Every, fleet)
}

func beatsAreSpread(t *testing.T, period time.Duration, fleet int) {
	t.Helper()
	seconds := make([]int, period/time.Second)
	from := time.Unix(1_000_000, 0)
	for i := range fleet {
		node, second := fmt.Sprintf("worker-%d.example.com", i), 0
		for Beat(node, from, period) == Beat(node, from.Add(time.Duration(second)*time.Second), period) {
			second++
		}
		require.LessOrEqual(t, second, len(seconds))
		seconds[second-1]++
	}
	for second, beats := range seconds {
		assert.InDelta(t, fleet/len(seconds), beats, 60, "second %d", second)
	}
}
