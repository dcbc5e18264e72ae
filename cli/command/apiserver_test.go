// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/filter"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/testenv"
)

var bare, api = testenv.Env{Bare: true}, testenv.Env{}

func TestMain(m *testing.M) {
	if os.Getenv(filter.CompilerEnv) == "" {
		os.Setenv(filter.CompilerEnv, filepath.Join(testenv.Root(), "out", "bin", "rcbpf"))
	}
	os.Exit(bare.Run(runner(func() int { return api.Run(m) })))
}

type runner func() int

func (r runner) Run() int { return r() }

// against runs a command line as a person would, with a kubeconfig.
func against(t *testing.T, kubeconfig string, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	streams := Streams{In: strings.NewReader(""), Out: &out, Err: &out}
	code := Run(t.Context(), append([]string{"ringcap", "--kubeconfig", kubeconfig}, args...), "test", streams)
	return code, out.String()
}

func TestServerWithoutRingcap(t *testing.T) {
	kubeconfig := bare.Kubeconfig(t)
	code, said := against(t, kubeconfig, "doctor")
	require.Equal(t, ExitBad, code, said)
	require.Contains(t, said, "does not know CaptureRing, Cluster, NodeCapture of ringcap.io/v1alpha1")
	code, said = against(t, kubeconfig, "status")
	require.Equal(t, ExitFailed, code, said)
	require.Contains(t, said, "install the chart")
}

func TestServer(t *testing.T) {
	kubeconfig, c := api.Kubeconfig(t), api.Client(t)
	ring := &v1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "mirror"}, Spec: v1.CaptureRingSpec{Interfaces: []v1.InterfaceSelector{{Name: "eth0"}}}}
	require.NoError(t, c.Create(t.Context(), ring))
	t.Cleanup(func() { require.NoError(t, c.Delete(context.Background(), ring)) })
	code, said := against(t, kubeconfig, "status")
	require.Equal(t, ExitBad, code, said)
	require.Contains(t, said, "the operator has not processed it yet")
	code, said = against(t, kubeconfig, "doctor")
	require.Equal(t, ExitBad, code, said)
	require.Contains(t, said, "CaptureRing mirror: feeds nobody")
	require.NotContains(t, said, "cannot list")
}

// A user who may only read ringcap's objects is told what the doctor could not check.
func TestDoctorWithFewRights(t *testing.T) {
	kubeconfig, c := api.Kubeconfig(t), api.Client(t)
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "ringcap-viewer"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"ringcap.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ringcap-viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ringcap-viewer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "viewer"}},
	}
	require.NoError(t, c.Create(t.Context(), role))
	require.NoError(t, c.Create(t.Context(), binding))
	require.Eventually(t, func() bool {
		_, said := against(t, kubeconfig, "--as", "viewer", "doctor")
		return strings.Contains(said, "cannot list DeploymentList") && strings.Contains(said, "docs/cli.md")
	}, 10*time.Second, 100*time.Millisecond)
	silentNode(t, c)
	_, said := against(t, kubeconfig, "--as", "viewer", "doctor")
	require.Contains(t, said, "needs the verb list on leases in namespace ringcap-system: a node counts as silent after 8 minutes, not 3")
	require.NotContains(t, said, "has not reported")
	_, said = against(t, kubeconfig, "doctor")
	require.Contains(t, said, "node quiet: its agent has not reported since")
	code, said := against(t, kubeconfig, "--as", "nobody", "status")
	require.Equal(t, ExitFailed, code, said)
	require.Contains(t, said, "your user needs the verbs get, list and watch on ringcap.io")
}

// silentNode reported five minutes ago, and has no Lease.
func silentNode(t *testing.T, c client.Client) {
	t.Helper()
	node := &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "quiet"}, Spec: v1.NodeCaptureSpec{Rings: []v1.NodeRing{{Name: "mirror", UID: "u"}}}}
	require.NoError(t, c.Create(t.Context(), node))
	t.Cleanup(func() { require.NoError(t, c.Delete(context.Background(), node)) })
	node.Status.ObservedTime = &metav1.Time{Time: time.Now().Add(-5 * time.Minute)}
	node.Status.Agent = &v1.NodeAgent{Namespace: "ringcap-system", Pod: "agent-0", Port: 9466}
	require.NoError(t, c.Status().Update(t.Context(), node))
}

// A user who may edit one namespace captures its pods there by a PodCapture and needs no rights in the cluster. Elsewhere the missing
// right is named. No operator runs here, and what was made is removed.
func TestCaptureWithANamespacesRights(t *testing.T) {
	kubeconfig, c := api.Kubeconfig(t), api.Client(t)
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "create", "delete"}},
		{APIGroups: []string{"ringcap.io"}, Resources: []string{"podcaptures"}, Verbs: []string{"get", "create", "delete"}},
	}
	for _, namespace := range []string{"mine", "others"} {
		require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
		require.NoError(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}))
		require.NoError(t, c.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "x"}}},
		}))
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "editor"}
		require.NoError(t, c.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
		require.NoError(t, c.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "editor"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "editor"}},
		}))
		rules = rules[:1]
	}
	capture := func(namespace string) string {
		code, said := against(t, kubeconfig, "--as", "editor", "-n", namespace, "capture", "pod/web", "-w", filepath.Join(t.TempDir(), "file"), "--image", "agent:1", "--timeout", "2s")
		assert.Equal(t, ExitFailed, code, said)
		return said
	}
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		said := capture("mine")
		assert.Contains(collect, said, "made PodCapture ringcap-cli-")
		assert.Contains(collect, said, "while waiting: the operator has not processed PodCapture ringcap-cli-")
	}, 30*time.Second, 100*time.Millisecond)
	var left v1.PodCaptureList
	require.NoError(t, c.List(t.Context(), &left))
	require.Empty(t, left.Items)
	require.Contains(t, capture("others"), "your user needs the verbs get, list and watch on ringcap.io")
}
