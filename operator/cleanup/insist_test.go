// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/suspend"
)

var deployment = client.ObjectKey{Namespace: "ringcap-system", Name: "ringcap-operator"}

// cluster is an API server whose next answers are these errors, with a ring and the operator's Deployment.
func cluster(t *testing.T, answers ...error) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	next := func() (err error) {
		if len(answers) > 0 {
			err, answers = answers[0], answers[1:]
		}
		return err
	}
	operator := suspend.Metadata()
	operator.Namespace, operator.Name = deployment.Namespace, deployment.Name
	operator.Annotations = map[string]string{suspend.Annotation: "2026-01-01T00:00:00Z"}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(operator, &v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "r"}}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if err := next(); err != nil {
					return err
				}
				return c.Get(ctx, key, o, options...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if err := next(); err != nil {
					return err
				}
				return c.List(ctx, list, options...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if err := next(); err != nil {
					return err
				}
				return c.Delete(ctx, o, options...)
			},
		}).Build()
}

// unreachable is what a client returns when nobody listens at the API server's address.
var unreachable error = &url.Error{Op: "Get", URL: "https://10.96.0.1:443", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}

func TestAnAPIServerThatIsAwayEndsNothing(t *testing.T) {
	for name, do := range map[string]func(context.Context, client.Client, *bytes.Buffer) error{
		"cleanup": func(ctx context.Context, c client.Client, out *bytes.Buffer) error { return Run(ctx, c, out) },
		"leave": func(ctx context.Context, c client.Client, out *bytes.Buffer) error {
			return insist(ctx, out, func(ctx context.Context) error { return deleteOwn(ctx, c, "ringcap-system", "l") })
		},
	} {
		for _, answer := range []error{unreachable, apierrors.NewTooManyRequestsError("busy"), apierrors.NewInternalError(errors.New("starting"))} {
			var out bytes.Buffer
			require.NoError(t, do(t.Context(), cluster(t, answer, answer), &out), "%s, %v", name, answer)
			require.Contains(t, out.String(), "trying again: ", "%s, %v", name, answer)
		}
	}
}

// With --keep the Deployment is read first, and the ring waits for the operator, which is not there.
func TestKeepInsistsOnItsMark(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var out bytes.Buffer
	err := Keep(ctx, cluster(t, unreachable), deployment, &out)
	require.ErrorContains(t, err, "not all nodes are clean")
	require.Contains(t, out.String(), "connection refused")
	require.Contains(t, out.String(), "CaptureRing r: the operator has not processed it yet")
}

func TestAnAPIServerThatRefusesEndsIt(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "captureRings"}, "r", errors.New("no right"))
	var out bytes.Buffer
	require.ErrorIs(t, Run(t.Context(), cluster(t, refused), &out), error(refused))
	require.ErrorIs(t, Keep(t.Context(), cluster(t, refused), deployment, &out), error(refused))
	require.Empty(t, out.String())
}

func TestAnAPIServerThatStaysAwayIsNamed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	err := insist(ctx, &bytes.Buffer{}, func(context.Context) error { return fmt.Errorf("list what there is: %w", unreachable) })
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, err, "gave up: list what there is")
}
