// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/heartbeat"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/cleanup"
	"github.com/ringcap/ringcap/operator/suspend"
)

// release is the chart, installed by the real helm where nothing runs pods: the test plays the operator, which takes
// its finalizer away, and the controller of Jobs.
type release struct {
	t     *testing.T
	admin client.Client
	args  []string
	// deletes: it was installed with crds.keep=false.
	deletes bool
}

func (r *release) helm(args ...string) (string, error) {
	return helm(r.t, append(args, r.args...)...)
}

// uninstall runs helm uninstall, and the Jobs that it starts with the rights that the chart gives them: before it, and when
// that one succeeds also after it, with nodes that are clean at once.
func (r *release) uninstall(timeout time.Duration) (string, error) {
	type result struct {
		out string
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, err := r.helm("uninstall", "ringcap", "--timeout=60s")
		done <- result{out, err}
	}()
	succeeded := r.work("cleanup", timeout, func(ctx context.Context, c client.Client, out io.Writer) error {
		if r.deletes {
			return cleanup.Run(ctx, c, out)
		}
		return cleanup.Keep(ctx, c, client.ObjectKey{Namespace: "ringcap-system", Name: "ringcap-operator"}, out)
	})
	if succeeded {
		r.work("leave", timeout, func(ctx context.Context, c client.Client, out io.Writer) error {
			nodes := client.ObjectKey{Namespace: "ringcap-system", Name: "ringcap-leave-node"}
			r.cleanNodes(nodes)
			return cleanup.Leave(ctx, c, nodes, "ringcap-operator", out)
		})
	}
	res := <-done
	return res.out, res.err
}

// work does what a Job does, as its service account, and returns whether it succeeded.
func (r *release) work(component string, timeout time.Duration, do func(context.Context, client.Client, io.Writer) error) bool {
	key := client.ObjectKey{Namespace: "ringcap-system", Name: "ringcap-" + component}
	var job batchv1.Job
	require.EventuallyWithT(r.t, func(c *assert.CollectT) {
		require.NoError(c, r.admin.Get(r.t.Context(), key, &job))
		assert.Zero(c, job.Status.StartTime, "the Job of an earlier attempt")
	}, 30*time.Second, 50*time.Millisecond)

	config := rest.CopyConfig(bare.Config(r.t))
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:ringcap-system:" + key.Name, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(r.t, err)
	ctx, cancel := context.WithTimeout(r.t.Context(), timeout)
	defer cancel()
	var out bytes.Buffer
	err = do(ctx, c, &out)
	r.finish(&job, err)
	return err == nil
}

// cleanNodes plays the controller of DaemonSets and the pods of one.
func (r *release) cleanNodes(key client.ObjectKey) {
	var set appsv1.DaemonSet
	require.NoError(r.t, r.admin.Get(r.t.Context(), key, &set))
	set.Status = appsv1.DaemonSetStatus{ObservedGeneration: set.Generation, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, NumberReady: 2}
	require.NoError(r.t, r.admin.Status().Update(r.t.Context(), &set))
}

// finish sets the Job's status as its controller does.
func (r *release) finish(job *batchv1.Job, failure error) {
	now := metav1.Now()
	job.Status.StartTime = &now
	add := func(kind batchv1.JobConditionType) {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now})
	}
	if failure == nil {
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		add(batchv1.JobSuccessCriteriaMet)
		add(batchv1.JobComplete)
	} else {
		job.Status.Failed = 1
		add(batchv1.JobFailureTarget)
		add(batchv1.JobFailed)
	}
	require.NoError(r.t, r.admin.Status().Update(r.t.Context(), job))
}

// upgradeFromOpenRings: if a ring without namespaces was open, the upgrade that would close it fails with its name and changes nothing.
func (r *release) upgradeFromOpenRings(ring *v1alpha1.CaptureRing) {
	t := r.t
	// The CRDs were upgraded by hand.
	var agents appsv1.DaemonSet
	require.NoError(t, r.admin.Get(t.Context(), client.ObjectKey{Namespace: "ringcap-system", Name: "ringcap-agent"}, &agents))
	args := &agents.Spec.Template.Spec.Containers[0].Args
	all := slices.Clone(*args)
	*args = slices.DeleteFunc(*args, func(a string) bool { return strings.HasPrefix(a, "--cut-off-after=") })
	require.NoError(t, r.admin.Update(t.Context(), &agents))
	out, err := r.helm("upgrade", "ringcap", "ringcap")
	require.Error(t, err, out)
	require.Contains(t, out, "CaptureRings that name no namespace: mirror.")
	ring.Spec.Consumers = &v1alpha1.Consumers{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"sensors": "yes"}}}
	require.NoError(t, r.admin.Update(t.Context(), ring))
	out, err = r.helm("upgrade", "ringcap", "ringcap", "--dry-run=server")
	require.NoError(t, err, out)
	ring.Spec.Consumers = nil
	require.NoError(t, r.admin.Update(t.Context(), ring))
	agents.Spec.Template.Spec.Containers[0].Args = all
	require.NoError(t, r.admin.Update(t.Context(), &agents))

	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, r.admin.Get(t.Context(), client.ObjectKey{Name: "capturerings.ringcap.io"}, &crd))
	earlier := crd.DeepCopy()
	delete(earlier.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["consumers"].Properties, "namespaceSelector")
	consumers := earlier.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["consumers"]
	consumers.XValidations = nil
	earlier.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["consumers"] = consumers
	require.NoError(t, r.admin.Update(t.Context(), earlier))
	out, err = r.helm("upgrade", "ringcap", "ringcap")
	require.Error(t, err, out)
	require.Contains(t, out, "CaptureRings that name no namespace: mirror.")
	require.Contains(t, out, "--set upgrade.closeRings=true")
	require.NoError(t, r.admin.Get(t.Context(), client.ObjectKeyFromObject(&crd), &crd))
	require.NotContains(t, crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["consumers"].Properties, "namespaceSelector")

	ring.Spec.Consumers = &v1alpha1.Consumers{Namespaces: []string{"sensors"}}
	require.NoError(t, r.admin.Update(t.Context(), ring))
	wide := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "wide"}, Spec: v1alpha1.ClusterSpec{Rings: []string{"mirror"}, Queues: 1}}
	wide.Spec.Consumers = &v1alpha1.Consumers{Namespaces: []string{"sensors", "lab"}}
	require.NoError(t, r.admin.Create(t.Context(), wide))
	out, err = r.helm("upgrade", "ringcap", "ringcap")
	require.Error(t, err, out)
	require.Contains(t, out, "Clusters that are wider than their rings: wide (CaptureRing mirror does not name lab).")
	require.NoError(t, r.admin.Delete(t.Context(), wide))
	// The test's own change of the CRD is in the way otherwise.
	out, err = r.helm("upgrade", "ringcap", "ringcap", "--force-conflicts")
	require.NoError(t, err, out)
	ring.Spec.Consumers = nil
	require.NoError(t, r.admin.Update(t.Context(), ring))
	out, err = r.helm("upgrade", "ringcap", "ringcap")
	require.NoError(t, err, "of rings that were never open nothing is said: %s", out)
}

// TestInstallUpgradeUninstall: an uninstall is refused while nodes are not clean, and leaves the CRDs with what users made, and nothing
// else; without crds.keep it leaves nothing.
func TestInstallUpgradeUninstall(t *testing.T) {
	admin := bare.Client(t)
	r := &release{t: t, admin: admin, args: []string{"--namespace=ringcap-system", "--kubeconfig=" + bare.Kubeconfig(t)}}
	out, err := r.helm("install", "ringcap", "ringcap", "--create-namespace")
	require.NoError(t, err, out)
	require.Contains(t, out, "kubectl get nodecaptures")
	out, err = r.helm("upgrade", "ringcap", "ringcap", "--set=agent.module.mode=Disabled")
	require.NoError(t, err, out)
	r.upgradeAndRollback()

	ring := &v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "mirror", Finalizers: []string{v1alpha1.FinalizerNodes}}}
	ring.Spec.Interfaces = []v1alpha1.InterfaceSelector{{Name: "mirror0"}}
	require.NoError(t, admin.Create(t.Context(), ring))
	r.upgradeFromOpenRings(ring)
	out, err = r.uninstall(2 * time.Second)
	require.Error(t, err, out)
	agent := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ringcap-system", Name: "ringcap-agent"}}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(agent), agent), "who is to clean the node is still there")

	require.NoError(t, admin.Create(t.Context(), &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}))
	require.NoError(t, admin.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ringcap-system", Name: "ringcap-operator"}}))
	require.NoError(t, admin.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ringcap-system", Name: heartbeat.Name("node-1"), Labels: heartbeat.Labels(),
	}}))
	r.suspended(ring)
	out, err = r.uninstall(30 * time.Second)
	require.NoError(t, err, out)
	spec := ring.Spec.DeepCopy()
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(ring), ring))
	require.Equal(t, *spec, ring.Spec)
	require.Nil(t, ring.DeletionTimestamp)
	require.True(t, apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(agent), agent)))
	require.False(t, meta.IsNoMatchError(admin.List(t.Context(), &v1alpha1.CaptureRingList{})), "the CRDs stay")
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.DaemonSetList{}, &batchv1.JobList{}, &coordinationv1.LeaseList{}, &rbacv1.RoleList{},
		&v1alpha1.NodeCaptureList{},
	} {
		require.NoError(t, admin.List(t.Context(), list, client.InNamespace("ringcap-system")))
		require.Zero(t, meta.LenList(list), "%T", list)
	}

	// Once more, over the CRDs that stayed; the mark of the uninstall is gone.
	out, err = r.helm("install", "ringcap", "ringcap")
	require.NoError(t, err, out)
	require.Empty(t, r.mark())

	// And without keeping anything.
	out, err = r.helm("upgrade", "ringcap", "ringcap", "--set=crds.keep=false")
	require.NoError(t, err, out)
	r.deletes = true
	out, err = r.uninstall(30 * time.Second)
	require.NoError(t, err, out)
	require.Error(t, admin.List(t.Context(), &v1alpha1.CaptureRingList{}))
	out, err = r.helm("install", "ringcap", "ringcap")
	require.NoError(t, err, out)
}

// mark is that of an uninstall on the operator's Deployment.
func (r *release) mark() string {
	var operator appsv1.Deployment
	require.NoError(r.t, r.admin.Get(r.t.Context(), client.ObjectKey{Namespace: "ringcap-system", Name: "ringcap-operator"}, &operator))
	return operator.Annotations[suspend.Annotation]
}

// suspended plays the operator when the nodes are rid of the ring.
func (r *release) suspended(ring *v1alpha1.CaptureRing) {
	require.NotEmpty(r.t, r.mark())
	require.NoError(r.t, r.admin.Get(r.t.Context(), client.ObjectKeyFromObject(ring), ring))
	ring.Finalizers = nil
	require.NoError(r.t, r.admin.Update(r.t.Context(), ring))
	meta.SetStatusCondition(&ring.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSuspended, Message: "since " + r.mark(),
	})
	require.NoError(r.t, r.admin.Status().Update(r.t.Context(), ring))
}

// upgradeAndRollback: an upgrade of a release without a field in its CRD adds the field, and a rollback removes it; rings stay.
func (r *release) upgradeAndRollback() {
	const field = "watermarkTimeout"
	former := filepath.Join(r.t.TempDir(), "ringcap")
	require.NoError(r.t, os.CopyFS(former, os.DirFS("ringcap")))
	file := filepath.Join(former, "files", "crd", "ringcap.io_capturerings.yaml")
	text, err := os.ReadFile(file)
	require.NoError(r.t, err)
	less := regexp.MustCompile(`(?m)^ {14}`+field+`:\n(?: {15}.*\n)+`).ReplaceAll(text, nil)
	require.NotEqual(r.t, text, less)
	require.NoError(r.t, os.WriteFile(file, less, 0o644))
	has := func(want bool) {
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(r.t, r.admin.Get(r.t.Context(), client.ObjectKey{Name: "capturerings.ringcap.io"}, &crd))
		_, there := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties[field]
		require.Equal(r.t, want, there)
	}
	ring := &v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "stays"}}
	ring.Spec.Interfaces = []v1alpha1.InterfaceSelector{{Name: "mirror0"}}
	require.NoError(r.t, r.admin.Create(r.t.Context(), ring))
	for _, step := range []struct {
		args []string
		has  bool
	}{
		{[]string{"upgrade", "ringcap", former}, false},
		{[]string{"upgrade", "ringcap", "ringcap", "--reset-then-reuse-values"}, true},
		{[]string{"rollback", "ringcap", "3"}, false},
		{[]string{"upgrade", "ringcap", "ringcap"}, true},
	} {
		out, err := r.helm(step.args...)
		require.NoError(r.t, err, out)
		has(step.has)
		require.NoError(r.t, r.admin.Get(r.t.Context(), client.ObjectKeyFromObject(ring), ring))
	}
	require.NoError(r.t, r.admin.Delete(r.t.Context(), ring))
}
