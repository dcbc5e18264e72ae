// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/testenv"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

const namespace = "ringcap-system"

// kubeconfig writes how to reach the API server as a service account of the chart's, or as an administrator.
func kubeconfig(t *testing.T, account string) string {
	t.Helper()
	config := env.Config(t)
	user := &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	if account != "" {
		user.Impersonate = "system:serviceaccount:" + namespace + ":" + account
		user.ImpersonateGroups = []string{"system:serviceaccounts", "system:authenticated"}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": user},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	}, file))
	return file
}

// installChart renders the chart and applies all of it; nobody runs the pods.
func installChart(t *testing.T, admin client.Client) {
	t.Helper()
	require.NoError(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	program, err := testenv.Binary("helm")
	if err != nil {
		t.Skip(err)
	}
	chart := filepath.Join(testenv.Root(), "charts", "ringcap")
	manifests, err := exec.CommandContext(t.Context(), program, "template", "ringcap", chart, "--skip-tests", "--namespace="+namespace).Output()
	require.NoError(t, err)
	kubectl, err := testenv.Binary("kubectl")
	if err != nil {
		t.Skip(err)
	}
	apply := exec.CommandContext(t.Context(), kubectl, "--kubeconfig="+kubeconfig(t, ""), "apply", "--server-side", "--force-conflicts", "-f", "-")
	apply.Stdin = bytes.NewReader(manifests)
	out, err := apply.CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestAsTheChartRunsIt: with the chart's rights and no others, the operator is elected, becomes ready, writes
// the nodes, reports, and cleans up.
func TestAsTheChartRunsIt(t *testing.T) {
	admin := env.Client(t)
	installChart(t, admin)
	require.NoError(t, admin.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}))
	ring := &v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "mirror"}}
	ring.Spec.Interfaces = []v1alpha1.InterfaceSelector{{Name: "mirror0"}}
	require.NoError(t, admin.Create(t.Context(), ring))
	lost := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "lost"}, Spec: v1alpha1.ClusterSpec{Rings: []string{"none"}, Queues: 1}}
	require.NoError(t, admin.Create(t.Context(), lost))
	pods := &v1alpha1.PodCapture{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "pods"}}
	require.NoError(t, admin.Create(t.Context(), pods))

	health, scraped := freeAddress(t), freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	t.Setenv("KUBECONFIG", kubeconfig(t, "ringcap-operator"))
	require.ErrorContains(t, run(ctx, []string{"--deployment=ringcap-operator"}), "give --namespace")
	ofDeployment := []string{"--namespace=" + namespace, "--deployment=ringcap-operator"}
	go func() {
		done <- run(ctx, append(ofDeployment, "--metrics-address="+scraped, "--health-address="+health, "--log-level=error"))
	}()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var lease coordinationv1.Lease
		assert.NoError(c, admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: leaseName}, &lease))
		for _, path := range []string{"/healthz", "/readyz"} {
			answer, err := http.Get("http://" + health + path)
			require.NoError(c, err)
			assert.NoError(c, answer.Body.Close())
			assert.Equal(c, http.StatusOK, answer.StatusCode)
		}
		var node v1alpha1.NodeCapture
		require.NoError(c, admin.Get(t.Context(), client.ObjectKey{Name: "node-1"}, &node))
		require.Len(c, node.Spec.Rings, 2)
		require.NoError(c, admin.Get(t.Context(), client.ObjectKeyFromObject(pods), pods))
		assert.Equal(c, v1alpha1.ResourcePrefix+node.Spec.Rings[1].Name, pods.Status.Resource)
		require.NoError(c, admin.Get(t.Context(), client.ObjectKeyFromObject(ring), ring))
		assert.Len(c, ring.Status.Conditions, 9, "Accepted, Programmed, Ready, Degraded, RolledOut, RulesEffective, ConsumersEffective, PacketsWhole, NetworksWritten")
		var events corev1.EventList
		require.NoError(c, admin.List(t.Context(), &events, client.InNamespace(metav1.NamespaceDefault)))
		assert.True(c, slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.Name == "lost" && e.Reason == v1alpha1.ReasonRingNotFound && e.Type == corev1.EventTypeWarning
		}), "an event tells of the Cluster that is not accepted")
		text := body(c, "http://"+scraped+"/metrics")
		for _, line := range []string{
			`ringcap_operator_build_info{version="unknown"} 1`, `ringcap_operator_node_reporting{nodecapture="node-1"} 0`,
			`ringcap_operator_object_ready{kind="CaptureRing",name="mirror",reason="NoQueues"} 0`,
			`ringcap_operator_object_nodes_desired{kind="CaptureRing",name="mirror"} 1`,
			`ringcap_operator_object_ready{kind="Cluster",name="lost",reason="RingNotFound"} 0`,
			`controller_runtime_reconcile_total{controller="rollout",result="success"}`,
		} {
			assert.True(c, strings.Contains(text, line), line)
		}
	}, time.Minute, 200*time.Millisecond)

	t.Setenv("KUBECONFIG", kubeconfig(t, "ringcap-cleanup"))
	require.ErrorContains(t, clean(t.Context(), []string{"--keep"}), "give --namespace and --deployment with --keep")
	require.ErrorContains(t, clean(t.Context(), nil), "forbidden", "where the objects stay the Job need not be able to delete them")
	require.NoError(t, clean(t.Context(), append(ofDeployment, "--keep", "--timeout=30s")))
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(ring), ring))
	require.Empty(t, ring.Finalizers)

	cancel()
	require.NoError(t, <-done)
	var lease coordinationv1.Lease
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: leaseName}, &lease))
	require.Empty(t, *lease.Spec.HolderIdentity, "who stops lets the next one begin at once")

	t.Setenv("KUBECONFIG", kubeconfig(t, ""))
	require.ErrorContains(t, run(t.Context(), []string{"--namespace=" + namespace, "--deployment=other", "--metrics-address=0", "--health-address=0"}),
		"there is no Deployment ringcap-system/other")
}

func body(c *assert.CollectT, url string) string {
	answer, err := http.Get(url)
	require.NoError(c, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(c, err)
	return string(text)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}
