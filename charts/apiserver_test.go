// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/heartbeat"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/testenv"
)

// asAgent is a client with an agent's service account; node is what the API server found in its token.
func asAgent(t *testing.T, node string) client.Client {
	t.Helper()
	config := rest.CopyConfig(env.Config(t))
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:ringcap-system:ringcap-agent",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:ringcap-system", "system:authenticated"},
	}
	if node != "" {
		config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)
	return c
}

// installAgentRights applies what the chart has about the rights of agents, once for all tests.
func installAgentRights(t *testing.T, admin client.Client) {
	t.Helper()
	installPolicies(t, admin)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ringcap-system"}}
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), system)))
	for _, object := range decode(t, render(t)) {
		switch object.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *rbacv1.Role, *rbacv1.RoleBinding:
			if object.GetName() == "ringcap-agent" {
				require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), object)))
			}
		}
	}
}

// installPolicies applies the chart's admission policies, once for all tests.
func installPolicies(t *testing.T, admin client.Client) {
	t.Helper()
	for _, object := range decode(t, render(t)) {
		switch object.(type) {
		case *admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding:
			require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), object)))
		}
	}
}

// TestAgentWritesItsOwnNodeCaptureOnly, and of that the status only.
func TestAgentWritesItsOwnNodeCaptureOnly(t *testing.T) {
	admin := env.Client(t)
	installAgentRights(t, admin)
	for _, name := range []string{"mine", "other"} {
		require.NoError(t, admin.Create(t.Context(), &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	report := func(c client.Client, name string) error {
		var nc v1alpha1.NodeCapture
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &nc); err != nil {
			return err
		}
		nc.Status.KernelRelease = time.Now().String()
		return c.Status().Update(t.Context(), &nc)
	}

	mine, nobody := asAgent(t, "mine"), asAgent(t, "")
	// The API server compiles a policy some time after it was created.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.True(c, apierrors.IsForbidden(report(mine, "other")))
	}, 30*time.Second, 100*time.Millisecond)

	require.NoError(t, report(mine, "mine"))
	require.ErrorContains(t, report(mine, "other"), "the agent of node mine may write that node's NodeCapture and Lease only, not NodeCapture other")
	require.ErrorContains(t, report(nobody, "mine"), "the agent's token names no node")
	require.NoError(t, report(admin, "other"), "the policy is about agents")

	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"rings":[]}}`))
	nc := &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	require.True(t, apierrors.IsForbidden(mine.Patch(t.Context(), nc, patch)), "its desired state is not the agent's to write")
	require.True(t, apierrors.IsForbidden(mine.Delete(t.Context(), nc)))
	require.True(t, apierrors.IsForbidden(mine.List(t.Context(), &corev1.SecretList{})))
	tellEvents(t, mine)
}

// TestAgentRenewsItsOwnLeaseOnly, in its own namespace, and does not delete it. Others may do there what they may.
func TestAgentRenewsItsOwnLeaseOnly(t *testing.T) {
	admin := env.Client(t)
	installAgentRights(t, admin)
	mine, nobody := asAgent(t, "mine"), asAgent(t, "")
	lease := func(namespace, name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	renew := func(c client.Client, l *coordinationv1.Lease) error {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"renewTime":"`+time.Now().Format(metav1.RFC3339Micro)+`"}}`))
		return c.Patch(t.Context(), l.DeepCopy(), patch)
	}
	const system = "ringcap-system"
	own, other, leader := lease(system, heartbeat.Name("mine")), lease(system, heartbeat.Name("other")), lease(system, "ringcap-operator")
	require.NoError(t, admin.Create(t.Context(), other.DeepCopy()))
	require.NoError(t, admin.Create(t.Context(), leader.DeepCopy()))
	// The API server compiles a policy some time after it was created.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.True(c, apierrors.IsForbidden(renew(mine, other)))
	}, 30*time.Second, 100*time.Millisecond)

	require.True(t, apierrors.IsNotFound(renew(mine, own)))
	require.NoError(t, mine.Create(t.Context(), own.DeepCopy()))
	require.NoError(t, renew(mine, own))
	const only = "the agent of node mine may write that node's NodeCapture and Lease only, not Lease "
	require.ErrorContains(t, renew(mine, other), only+"ringcap-agent-other")
	require.ErrorContains(t, renew(mine, leader), only+"ringcap-operator")
	require.ErrorContains(t, renew(nobody, own), "the agent's token names no node")
	require.NoError(t, renew(admin, other), "the policy is about agents")
	for _, name := range []string{"mine", heartbeat.Name("third"), heartbeat.Name("mine-too")} {
		require.ErrorContains(t, mine.Create(t.Context(), lease(system, name)), only+name)
	}
	generated := lease(system, "")
	generated.GenerateName = heartbeat.Name("")
	for what, err := range map[string]error{
		"a name of the server's making": mine.Create(t.Context(), generated),
		"another namespace":             mine.Create(t.Context(), lease("elsewhere", own.Name)),
		"read":                          mine.Get(t.Context(), client.ObjectKeyFromObject(leader), leader.DeepCopy()),
		"delete":                        mine.Delete(t.Context(), own),
		"delete all":                    mine.DeleteAllOf(t.Context(), own, client.InNamespace(system)),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: %v", what, err)
	}
	require.NoError(t, admin.DeleteAllOf(t.Context(), &coordinationv1.Lease{}, client.InNamespace(system)))
}

// asOperator is a client with the operator's service account.
func asOperator(t *testing.T) client.Client {
	t.Helper()
	config := rest.CopyConfig(env.Config(t))
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:ringcap-system:ringcap-operator", Groups: []string{"system:masters"},
	}
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)
	return c
}

// TestOnlyTheOperatorWritesWhatNodesAreAskedFor, and the cluster's administrator everything else of a NodeCapture.
func TestOnlyTheOperatorWritesWhatNodesAreAskedFor(t *testing.T) {
	admin, operator := env.Client(t), asOperator(t)
	installPolicies(t, admin)
	spec := v1alpha1.NodeCaptureSpec{Rings: []v1alpha1.NodeRing{{Name: "mirror", UID: "u"}}}
	capture := func(name string) *v1alpha1.NodeCapture {
		return &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.ErrorContains(c, admin.Create(t.Context(), capture("asked"), client.DryRunAll), "written by ringcap's operator")
	}, 30*time.Second, 100*time.Millisecond)

	asked := capture("asked")
	require.NoError(t, operator.Create(t.Context(), asked))
	for _, patch := range []string{
		`{"spec":{"rings":[]}}`, `{"spec":{"rings":[{"name":"mirror","uid":"u","spec":{"queues":4}}]}}`,
		`{"spec":{"clusters":[{"name":"ids","spec":{}}]}}`,
	} {
		err := admin.Patch(t.Context(), asked, client.RawPatch("application/merge-patch+json", []byte(patch)))
		require.True(t, apierrors.IsForbidden(err), "%s: %v", patch, err)
	}
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"looked-at":"yes"}}}`))
	require.NoError(t, admin.Patch(t.Context(), asked, label))
	asked.Spec.Rings = nil
	require.NoError(t, operator.Update(t.Context(), asked))
	require.NoError(t, admin.Delete(t.Context(), asked))
}

// tellEvents: an agent may make events and count them, with notes of up to 1024 bytes.
func tellEvents(t *testing.T, agent client.Client) {
	t.Helper()
	event := func(name string, length int) *eventsv1.Event {
		return &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, EventTime: metav1.NowMicro(), Type: "Normal", Reason: "Programmed",
			Action: "Reconcile", ReportingController: "ringcap-node-agent", ReportingInstance: "n1", Note: strings.Repeat("n", length),
			Regarding: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeCapture", Name: "mine"},
		}
	}
	told := event("told", 1024)
	require.NoError(t, agent.Create(t.Context(), told))
	again := told.DeepCopy()
	again.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NowMicro()}
	require.NoError(t, agent.Patch(t.Context(), again, client.StrategicMergeFrom(told)))
	require.ErrorContains(t, agent.Create(t.Context(), event("long", 1025)), "1024")
}

// TestExamplesAreAccepted: the API server takes them as they are; the consumer's pod passes the restricted Pod Security
// level, which its namespace enforces.
func TestExamplesAreAccepted(t *testing.T) {
	admin := env.Client(t)
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "examples", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, object := range decode(t, string(text)) {
			require.NoError(t, admin.Create(t.Context(), object), "%s", file)
			deployment, ok := object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			require.NoError(t, admin.Create(t.Context(), &corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: deployment.Namespace},
			}))
			pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
			pod.Name, pod.Namespace = deployment.Name, deployment.Namespace
			require.NoError(t, admin.Create(t.Context(), pod), "%s", file)

			root := int64(0)
			bad := &corev1.Pod{ObjectMeta: *pod.ObjectMeta.DeepCopy(), Spec: *deployment.Spec.Template.Spec.DeepCopy()}
			bad.Name, bad.ResourceVersion = "root", ""
			bad.Spec.SecurityContext.RunAsUser = &root
			require.True(t, apierrors.IsForbidden(admin.Create(t.Context(), bad)), "the namespace enforces the level")
		}
	}
}
