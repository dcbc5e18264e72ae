// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/fleet"
	"github.com/ringcap/ringcap/operator/api/counters"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// agentsOf is an API server's proxy, with the agents of the NodeCaptures behind it. Each counts 1000 packets more than its
// NodeCapture has, but for those that are called mute, which cannot be reached, and hidden, for which a right is missing.
func agentsOf(t *testing.T, have []client.Object) fleet.Asker {
	t.Helper()
	answers := map[string]counters.Report{}
	for _, object := range have {
		node, ok := object.(*v1.NodeCapture)
		if !ok || node.Status.Agent == nil {
			continue
		}
		agent, status := node.Status.Agent, node.Status.DeepCopy()
		for i := range status.Rings {
			status.Rings[i].Seen, status.Rings[i].Passed = status.Rings[i].Seen+1000, status.Rings[i].Passed+1000
		}
		for i := range status.Clusters {
			status.Clusters[i].Queues[0].Delivered += 1000
		}
		path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/counters", agent.Namespace, agent.Pod, agent.Port)
		answers[path] = counters.Of(node.Name, *status, metav1.NewMicroTime(now))
	}
	return asking(t, func(w http.ResponseWriter, r *http.Request) {
		report, known := answers[r.URL.Path]
		switch {
		case strings.Contains(r.URL.Path, "/mute:"):
			refuse(w, apierrors.NewServiceUnavailable("error trying to reach service: no route to host"))
		case strings.Contains(r.URL.Path, "/hidden"):
			refuse(w, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "hidden", errors.New("no")))
		case !known:
			refuse(w, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, r.URL.Path))
		default:
			_ = json.NewEncoder(w).Encode(report)
		}
	})
}

func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(&status)
}

func asking(t *testing.T, answer http.HandlerFunc) fleet.Asker {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	ask, err := fleet.AskThrough(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	return ask
}

// manyNodes have a ring and an agent each.
func manyNodes(count int, pod string) []client.Object {
	observed := metav1.NewTime(now.Add(-40 * time.Second))
	ring := &v1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "mirror"}}
	objects := []client.Object{ring}
	for i := range count {
		objects = append(objects, &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%03d", i)}, Status: v1.NodeCaptureStatus{
			ObservedTime: &observed, Agent: &v1.NodeAgent{Namespace: "ringcap-system", Pod: fmt.Sprintf("%s-%d", pod, i), Port: 9466},
			Rings: []v1.NodeRingStatus{{Name: "mirror", Engine: v1.EngineEBPF, Ready: true, Seen: 5}},
		}})
	}
	return objects
}

// A user who may not ask the agents is told once which right is missing, and sees how old the figures are.
func TestWithoutTheRightToAskAgents(t *testing.T) {
	a, out, errOut := over(t, manyNodes(50, "hidden"))
	require.Equal(t, ExitBad, a.run(t.Context(), []string{"ringcap", "status"}))
	require.Equal(t, 1, strings.Count(errOut.String(), "needs the verb get on pods/proxy in namespace ringcap-system"), errOut)
	require.Equal(t, 50, strings.Count(out.String(), "counters are of 40s ago: you may not ask its agent"), out)
	require.Contains(t, out.String(), "CaptureRing mirror   seen 250 ")
	errOut.Reset()
	out.Reset()
	require.Equal(t, ExitFine, a.run(t.Context(), []string{"ringcap", "top", "--count", "1"}))
	require.Contains(t, out.String(), "first count, counters 40 s old")
	out.Reset()
	require.Equal(t, ExitBad, a.run(t.Context(), []string{"ringcap", "doctor"}))
	require.Equal(t, 1, strings.Count(out.String(), "get on pods/proxy"), out)
}

// Agents are asked at once, though not all of a fleet, and only those that have the ring.
func TestAgentsAreAskedAtOnce(t *testing.T) {
	objects := manyNodes(200, "agent")
	other := objects[1].(*v1.NodeCapture)
	other.Status.Rings[0].Name = "other"
	a, out, errOut := over(t, objects)
	agents := agentsOf(t, objects)
	var asked, now, most atomic.Int64
	front := asking(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		for n, m := now.Add(1), most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		defer now.Add(-1)
		time.Sleep(time.Millisecond)
		pod := strings.TrimSuffix(strings.Split(r.URL.Path, "/")[6], ":9466")
		report, err := agents(r.Context(), v1.NodeAgent{Namespace: "ringcap-system", Pod: pod, Port: 9466})
		if err == nil {
			err = json.NewEncoder(w).Encode(report)
		}
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	connect := a.connect
	a.connect = func() (*connection, error) {
		c, err := connect()
		c.agents = front
		return c, err
	}
	require.Equal(t, ExitBad, a.run(t.Context(), []string{"ringcap", "status", "mirror"}), errOut)
	require.EqualValues(t, 199, asked.Load())
	require.LessOrEqual(t, most.Load(), int64(32))
	require.Contains(t, out.String(), "CaptureRing mirror   seen 199,995 ")
	require.NotContains(t, out.String(), "counters are of")
}

// An agent's answer is not trusted: it may be invalid, another node's, or endless.
func TestAnswersThatAreNone(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		why    string
	}{
		"no JSON":      {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "its agent does not answer: read its answer: invalid character"},
		"another node": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"node": "x"}`) }, `pod ringcap-system/agent-0 answers for another node, "x"`},
		"no end": {func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = fmt.Fprint(w, strings.Repeat(" ", 1<<16))
			}
		}, "its agent does not answer: read its answer: "},
	} {
		t.Run(name, func(t *testing.T) {
			node := *manyNodes(1, "agent")[1].(*v1.NodeCapture)
			s := fleet.Snapshot{Now: now, Nodes: []v1.NodeCapture{node}}
			s.Ask(t.Context(), asking(t, test.answer))
			require.Contains(t, s.CountedOn(&node).Why, test.why)
			require.EqualValues(t, 5, s.Nodes[0].Status.Rings[0].Seen)
			require.Equal(t, 40*time.Second, now.Sub(s.CountedOn(&node).Time))
		})
	}
}
