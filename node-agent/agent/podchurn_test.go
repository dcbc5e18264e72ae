// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods of a real API server come and go, 20 at a time, 100 or RINGCAP_CHURN of them: the agent's watch has all that
// there are, then none, and its memory does not grow with those that went. What becomes of their interfaces is in
// node-agent/pods.
func TestPodsComeAndGo(t *testing.T) {
	const batch, growth = 20, 4 << 20
	count := 100
	if text := os.Getenv("RINGCAP_CHURN"); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	c := api.Client(t)
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "busy"}}))
	require.NoError(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "busy"}}))
	w, err := newPodWatch(api.Config(t), "busy-node", "", func() {})
	require.NoError(t, err)
	w.start(t.Context())
	w.want(t.Context(), podRing(""))
	known := func(want int) {
		t.Helper()
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			pods, unknown := w.Pods()
			assert.Empty(t, unknown)
			assert.Len(t, pods, want)
		}, time.Minute, 10*time.Millisecond)
	}
	var before uint64
	for round := range count / batch {
		var came []*corev1.Pod
		for i := range batch {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d-%d", round, i), Namespace: "busy"}}
			pod.Spec = corev1.PodSpec{NodeName: "busy-node", Containers: []corev1.Container{{Name: "c", Image: "none"}}, AutomountServiceAccountToken: new(bool)}
			require.NoError(t, c.Create(t.Context(), pod))
			came = append(came, pod)
		}
		known(batch)
		for _, pod := range came {
			require.NoError(t, c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
		}
		known(0)
		if round == min(2, count/batch-1) {
			before = heap()
		}
	}
	after := heap()
	t.Logf("%d pods came and went; memory in use: %d KiB before, %d KiB after", count, before>>10, after>>10)
	assert.Less(t, after, before+growth)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
