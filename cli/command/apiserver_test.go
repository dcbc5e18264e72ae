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

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/node-agent/filter"
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
	require.Contains(t, said, "no operator has looked at it yet")
	code, said = against(t, kubeconfig, "doctor")
	require.Equal(t, ExitBad, code, said)
	require.Contains(t, said, "CaptureRing mirror: feeds nobody")
	require.NotContains(t, said, "cannot list")
}

// Who may see ringcap's objects only is told what the doctor could not look at.
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
	code, said := against(t, kubeconfig, "--as", "nobody", "status")
	require.Equal(t, ExitFailed, code, said)
	require.Contains(t, said, "your user needs the verbs get, list and watch on ringcap.io")
}
