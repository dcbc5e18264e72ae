// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func session(t *testing.T, objects ...client.Object) *Session {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1.AddToScheme(scheme))
	require.NoError(t, corev1.AddToScheme(scheme))
	p := plan(Node{"worker-1", []string{"mirror0"}})
	p.Name = ""
	return &Session{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Plan: p}
}

// TestNamesAreUsedAgain: a kubelet keeps the name of each resource for ever, so captures have few, and none takes another's.
func TestNamesAreUsedAgain(t *testing.T) {
	var others []client.Object
	for i := range names {
		if i != 2 {
			others = append(others, &v1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name(i)}})
		}
	}
	s := session(t, others...)
	require.NoError(t, s.makeCluster(t.Context()))
	require.Equal(t, "ringcap-cli-2", s.Plan.Name)

	late := session(t)
	late.Client = s.Client
	require.ErrorContains(t, late.makeCluster(t.Context()), "8 captures run, the maximum at a time")
	require.Empty(t, late.made(), "it removes nothing of the others'")
}

// TestARefusedPodIsMadeAgain: a scheduler may still count a queue of the capture before, which had the same name.
func TestARefusedPodIsMadeAgain(t *testing.T) {
	refused := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Status: corev1.PodStatus{
		Phase: corev1.PodFailed, Reason: unexpected, Message: "no healthy devices present",
	}}
	s := session(t, refused)
	require.NoError(t, s.makeCluster(t.Context()))
	s.pods = []string{"p"}
	left, err := s.running(t.Context())
	require.NoError(t, err)
	require.Contains(t, left, "pod p on node worker-1")
	require.NotEqual(t, "p", s.pods[0])
	left, err = s.running(t.Context())
	require.NoError(t, err)
	require.Contains(t, left, s.pods[0])
	require.Error(t, s.Client.Get(t.Context(), client.ObjectKeyFromObject(refused), refused))

	s.tries = maxTries
	again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "q"}, Status: refused.Status}
	again.Status.Phase, again.Status.Reason, again.Status.Message = corev1.PodFailed, unexpected, "no healthy devices present"
	require.NoError(t, s.Client.Create(t.Context(), again))
	s.pods = []string{"q"}
	_, err = s.running(t.Context())
	require.ErrorContains(t, err, "no healthy devices present")
}

// TestAPodCaptureInsteadOfRingAndCluster: its ring's name is the queue's, the pods are its, and it is all there is to be removed.
func TestAPodCaptureInsteadOfRingAndCluster(t *testing.T) {
	s := session(t)
	s.Log, s.Plan.Own, s.Plan.Pods = t.Logf, &v1.PodCaptureSpec{Slots: 64}, 2
	stop, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, s.makeOwn(stop), "the operator has not processed PodCapture ringcap-cli-")
	var made v1.PodCaptureList
	require.NoError(t, s.Client.List(t.Context(), &made, client.InNamespace("default")))
	require.Len(t, made.Items, 1)
	own := &made.Items[0]
	require.Equal(t, s.Plan.labels(), own.Labels)
	is := func(accepted, reason string, pods int32) {
		t.Helper()
		own.Status.Pods, own.Status.Resource = pods, "ringcap.io/pods-default-0"
		own.Status.Conditions = []metav1.Condition{
			{Type: v1.ConditionAccepted, Status: metav1.ConditionStatus(accepted), Reason: reason, Message: "because"}, {Type: v1.ConditionReady, Message: "not yet"},
		}
		require.NoError(t, s.Client.Update(t.Context(), own))
	}
	is("False", v1.ReasonLimitExceeded, 0)
	_, err := s.captured(t.Context())
	require.ErrorContains(t, err, "the operator does not accept the PodCapture: LimitExceeded: because")
	is("True", v1.ReasonAccepted, 1)
	left, err := s.captured(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1 of 2 pods are captured; PodCapture "+own.Name+": not yet", left)
	is("True", v1.ReasonAccepted, 2)
	left, err = s.captured(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)

	require.Equal(t, "pods-default-0", s.Plan.Name)
	s.own.UID = "u"
	pod := s.Plan.Pod(s.Plan.Nodes[0], s.owner())
	require.Equal(t, "PodCapture", pod.OwnerReferences[0].Kind)
	require.Equal(t, own.Name, pod.OwnerReferences[0].Name)
	require.Contains(t, pod.Spec.Containers[0].Resources.Limits, corev1.ResourceName("ringcap.io/pods-default-0"))
	require.Equal(t, []client.Object{s.own}, s.made())
	require.Contains(t, s.byHand(), "kubectl delete pods,podcaptures -n default -l ")
	require.NoError(t, s.Remove(t.Context()))
}

// TestAnothersClusterStays: names are used again, and one that was deleted by hand may be another capture's by the end of this one.
func TestAnothersClusterStays(t *testing.T) {
	others := &v1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name(0), UID: "others"}}
	s := session(t, others)
	s.cluster = &v1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name(0), UID: "own"}}
	var asked []metav1.Preconditions
	s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			asked = append(asked, *(&client.DeleteOptions{}).ApplyOptions(options).AsDeleteOptions().Preconditions)
			return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), errors.New("the UIDs differ"))
		},
	})
	require.NoError(t, s.Remove(t.Context()))
	require.Equal(t, []metav1.Preconditions{{UID: new(types.UID("own"))}}, asked)
}

// TestAProxyWithoutWebSockets: a stream falls back to SPDY, as kubectl's do.
func TestAProxyWithoutWebSockets(t *testing.T) {
	var upgrades []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrades = append(upgrades, r.Header.Get("Upgrade"))
		http.Error(w, "no such protocol here", http.StatusForbidden)
	}))
	defer proxy.Close()
	s := session(t)
	s.Config, s.pods = &rest.Config{Host: proxy.URL}, []string{"p"}
	require.Error(t, s.Dial(t.Context(), 0, strings.NewReader(""), io.Discard, io.Discard))
	require.Equal(t, []string{"websocket", "SPDY/3.1"}, upgrades)
}

// TestDeletedSources: nodes stop feeding the queue when what it is over is deleted; the capture must not end as if all were well.
func TestDeletedSources(t *testing.T) {
	mirror := func(uid types.UID) *v1.CaptureRing {
		return &v1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "mirror", UID: uid, Finalizers: []string{"ringcap.io/nodes"}}}
	}
	s := session(t, mirror("1"))
	s.Plan.Ring, s.Plan.RingUID = "mirror", "1"
	require.NoError(t, s.makeCluster(t.Context()))
	require.NoError(t, s.deleted(t.Context()))

	require.NoError(t, s.Client.Delete(t.Context(), mirror("1")))
	const deleted = "CaptureRing mirror was deleted: what came later is not in the file"
	synctest.Test(t, func(t *testing.T) { require.EqualError(t, s.Watch(t.Context()), deleted) })
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.EqualError(t, s.Watch(over), deleted, "deleted in the last seconds")
	s.Client = session(t, mirror("2"), s.cluster).Client
	require.ErrorContains(t, s.deleted(t.Context()), "CaptureRing mirror was deleted", "another has its name")
	s.Client = session(t, mirror("1")).Client
	require.ErrorContains(t, s.deleted(t.Context()), "Cluster ringcap-cli-0 was deleted")
	s.Client = interceptor.NewClient(session(t).Client.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewServiceUnavailable("down")
		},
	})
	require.NoError(t, s.deleted(t.Context()), "an outage of the API server")
}
