// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringcap/ringcap/operator/api/heartbeat"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

var now = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// node reported some time ago, from an agent in a namespace; none is one that cannot be asked.
func node(ago time.Duration, namespace string) *v1.NodeCapture {
	n := &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.ObservedTime = &metav1.Time{Time: now.Add(-ago)}
	if namespace != "" {
		n.Status.Agent = &v1.NodeAgent{Namespace: namespace, Pod: "agent-0", Port: 9466}
	}
	return n
}

func lease(ago time.Duration, namespace string) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(now.Add(-ago))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ringcap-agent-n1", Labels: heartbeat.Labels()},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed},
	}
}

// A node is heard by its status or its agent's Lease, of which the later counts. Its counters are of the status all the same.
func TestSilence(t *testing.T) {
	require.NoError(t, v1.AddToScheme(scheme.Scheme))
	const home, forbidden = "ringcap-system", "forbidden"
	for name, test := range map[string]struct {
		node   *v1.NodeCapture
		lease  *coordinationv1.Lease
		silent time.Duration // 0 for not
	}{
		"both are fresh":               {node(time.Minute, home), lease(time.Second, home), 0},
		"a fresh Lease":                {node(5*time.Minute, home), lease(time.Minute, home), 0},
		"a fresh status":               {node(time.Minute, home), lease(time.Hour, home), 0},
		"neither":                      {node(5*time.Minute, home), lease(4*time.Minute, home), 4 * time.Minute},
		"no Lease":                     {node(4*time.Minute, home), nil, 4 * time.Minute},
		"another's Lease":              {node(4*time.Minute, home), lease(time.Minute, "team"), 4 * time.Minute},
		"an agent of before":           {node(4*time.Minute, ""), lease(time.Minute, home), 4 * time.Minute},
		"a Lease that cannot be seen":  {node(8*time.Minute, forbidden), lease(time.Minute, forbidden), 0},
		"nothing for long, not seeing": {node(8*time.Minute+time.Second, forbidden), lease(time.Minute, forbidden), 8*time.Minute + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{test.node}
			if test.lease != nil {
				objects = append(objects, test.lease)
			}
			s, err := Read(t.Context(), reader(forbidden, objects...), now)
			require.NoError(t, err)
			got := s.Silence(&s.Nodes[0])
			require.Equal(t, test.silent == 0, got == "", got)
			if test.silent != 0 {
				require.Contains(t, got, "has not reported since "+now.Add(-test.silent).UTC().Format(time.RFC3339))
			}
			require.Equal(t, s.LeasesDenied != "", test.node.Status.Agent != nil && test.node.Status.Agent.Namespace == forbidden)
			require.True(t, s.CountedOn(&s.Nodes[0]).Time.Equal(test.node.Status.ObservedTime.Time))
		})
	}
	never := &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	require.Contains(t, (&Snapshot{Now: now}).Silence(never), "no agent has reported yet")

	// An agent's report about itself must not prevent reading the others.
	for _, namespace := range []string{"", "..", "a/b", "away/%2e", "\x1b[2J"} {
		wrong := node(4*time.Minute, home)
		wrong.Name, wrong.Status.Agent.Namespace = "n0", namespace
		s, err := Read(t.Context(), reader("", wrong, node(5*time.Minute, home), lease(time.Minute, home)), now)
		require.NoError(t, err)
		require.Contains(t, s.Silence(&s.Nodes[0]), "has not reported since")
		require.Empty(t, s.Silence(&s.Nodes[1]))
	}

	_, err := Read(t.Context(), reader("", node(0, home)), now)
	require.NoError(t, err)
	_, err = Read(t.Context(), reader(forbidden, node(0, "away")), now)
	require.ErrorContains(t, err, "list Leases in namespace away: no route")
}

// reader forbids to list Leases in a namespace, and fails for namespace away.
func reader(forbidden string, objects ...client.Object) client.Reader {
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			namespace := (&client.ListOptions{}).ApplyOptions(options).Namespace
			if why := rest.IsValidPathSegmentName(namespace); len(why) > 0 {
				return fmt.Errorf("invalid namespace %q: %v", namespace, why)
			}
			switch namespace {
			case "":
			case forbidden:
				return apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", errors.New("no"))
			case "away":
				return errors.New("no route")
			}
			return c.List(ctx, list, options...)
		},
	})
}
