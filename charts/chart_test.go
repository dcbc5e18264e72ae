// SPDX-License-Identifier: Apache-2.0

// Package charts_test renders the chart with the real helm, and tries on a real API server what a rendering alone
// does not show.
package charts_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/testenv"
)

var (
	env testenv.Env
	// bare has nothing of ringcap's but what helm installs.
	bare = testenv.Env{Bare: true}
)

func TestMain(m *testing.M) { os.Exit(env.Run(bareToo{m})) }

type bareToo struct{ m *testing.M }

func (b bareToo) Run() int { return bare.Run(b.m) }

// helm runs helm and returns what it printed.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := testenv.Binary("helm")
	if err != nil {
		t.Skip(err)
	}
	readChart(t)
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	return string(out), err
}

// readChart reads what helm will read, so that go test does not take a result for a former chart's from its cache.
func readChart(t *testing.T) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("ringcap", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			_, err = os.ReadFile(path)
		}
		return err
	}))
}

func render(t *testing.T, args ...string) string {
	t.Helper()
	out, err := helm(t, append([]string{"template", "ringcap", "ringcap", "--namespace=ringcap-system"}, args...)...)
	require.NoError(t, err, out)
	return out
}

// decode decodes each manifest strictly: a field that the API does not have is an error.
func decode(t *testing.T, manifests string) []client.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewBufferString(manifests)))
	defer documents.Close()
	var objects []client.Object
	for {
		document := make([]byte, 1<<20)
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if len(bytes.TrimSpace(withoutComments(document[:n]))) == 0 {
			continue
		}
		object, _, err := decoder.Decode(document[:n], nil, nil)
		require.NoError(t, err, "%s", document[:n])
		objects = append(objects, object.(client.Object))
	}
}

func withoutComments(document []byte) []byte {
	var out []byte
	for line := range bytes.Lines(document) {
		if !bytes.HasPrefix(line, []byte("#")) && !bytes.HasPrefix(line, []byte("---")) {
			out = append(out, line...)
		}
	}
	return out
}

func find[T client.Object](t *testing.T, objects []client.Object, name string) T {
	t.Helper()
	for _, object := range objects {
		if found, ok := object.(T); ok && object.GetName() == name {
			return found
		}
	}
	var none T
	t.Fatalf("no %T %s among %d manifests", none, name, len(objects))
	return none
}

func TestLint(t *testing.T) {
	out, err := helm(t, "lint", "--strict", "ringcap")
	require.NoError(t, err, out)
}

// TestRendersValidManifests: with the defaults and with everything turned the other way.
func TestRendersValidManifests(t *testing.T) {
	variants := map[string][]string{
		"defaults": nil,
		"all set": {
			"--set=fullnameOverride=other,apiServer.host=192.0.2.1,crds.keep=false,imagePullSecrets[0].name=secret",
			"--set=operator.image.digest=sha256:" + string(bytes.Repeat([]byte("0a"), 32)),
			"--set=operator.podLabels.a=b,operator.podAnnotations.a=b,agent.podLabels.a=b,agent.podAnnotations.a=b",
			"--set=operator.replicas=2,networkPolicy.enabled=true,networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.a=b",
			"--set=operator.networks.enabled=true,operator.networks.pools.enabled=true",
			"--set=agent.module.mode=Disabled,agent.extraCapabilities={SYS_ADMIN},agent.resources.limits.memory=1Gi,agent.maxUnavailable=1",
		},
		"all off": {"--set=crds.install=false,admissionPolicy.enabled=false,cleanup.enabled=false,operator.priorityClassName=,agent.priorityClassName="},
	}
	for name, args := range variants {
		t.Run(name, func(t *testing.T) { require.NotEmpty(t, decode(t, render(t, args...))) })
	}
	require.Contains(t, render(t, "--set=podMonitor.enabled=true"), "kind: PodMonitor")
}

// TestGolden shows in review what a change of a template changes. GOLDEN=update rewrites it.
func TestGolden(t *testing.T) {
	golden(t, filepath.Join("testdata", "defaults.yaml"), render(t, "--set=crds.install=false"))
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("GOLDEN") == "update" {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "when this is meant: GOLDEN=update go test ./charts")
}

// TestUninstallOutwaitsSilentNodes: a node that falls silent while it is waited for is left out in time, and before Helm gives up.
func TestUninstallOutwaitsSilentNodes(t *testing.T) {
	waits := regexp.MustCompile(`- cleanup\n(?: +- --[a-z]+.*\n)*? +- --timeout=([0-9]+s)`).FindStringSubmatch(render(t))
	require.NotNil(t, waits)
	timeout, err := time.ParseDuration(waits[1])
	require.NoError(t, err)
	require.Greater(t, timeout, v1alpha1.StaleAfter+15*time.Second, "the operator looks every 15 s")
	require.Less(t, timeout+time.Minute, 5*time.Minute, "helm's --timeout, with the minute that the Job's deadline has on top")
}

// TestKustomize: the base is the chart with its defaults, and a real API server takes all that kustomize makes of it.
func TestKustomize(t *testing.T) {
	var base bytes.Buffer
	base.WriteString("# SPDX-License-Identifier: Apache-2.0\n# Generated from charts/ringcap by its tests. DO NOT EDIT.\n")
	for line := range strings.Lines(render(t, "--set=crds.install=false,cleanup.enabled=false", "--skip-tests")) {
		if !strings.Contains(line, "managed-by: Helm") && !strings.Contains(line, "helm.sh/chart:") && !strings.HasPrefix(line, "# Source:") {
			base.WriteString(line)
		}
	}
	golden(t, filepath.Join("..", "kustomize", "ringcap.yaml"), base.String())

	program, err := testenv.Binary("kubectl")
	require.NoError(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ringcap-system"}}
	require.NoError(t, client.IgnoreAlreadyExists(bare.Client(t).Create(t.Context(), namespace)))
	// Not for good: nothing here ends a namespace.
	out, err := exec.CommandContext(t.Context(), program, "apply", "--dry-run=server", "-k", "../kustomize", "--kubeconfig="+bare.Kubeconfig(t)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "daemonset.apps/ringcap-agent created (server dry run)")
}

// TestUnknownValuesAreRefused: a typo is not ignored.
func TestUnknownValuesAreRefused(t *testing.T) {
	for _, value := range []string{"agent.modul.mode=Load", "agent.module.mode=Maybe", "operator.image.tag=a b", "agent.metricsPort=0", "agent.memoryReserve=some", "podCapture.maxMemory=some", "podCapture.maxPerNamespace=-1", "prometheusRule.runbookURL=docs", "typo=1"} {
		out, err := helm(t, "template", "ringcap", "ringcap", "--set="+value)
		require.Error(t, err, value)
		require.Contains(t, out, "schema", value)
	}
}

// TestDocumentedCapabilities: the table in docs/security.md has all capabilities that a container is given, and no more.
func TestDocumentedCapabilities(t *testing.T) {
	text, err := os.ReadFile("../docs/security.md")
	require.NoError(t, err)
	documented := map[string][]corev1.Capability{}
	for _, row := range regexp.MustCompile("(?m)^\\| (load-module|agent|clean-node) \\| `CAP_([A-Z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = append(documented[row[1]], corev1.Capability(row[2]))
	}
	for _, name := range []string{"ringcap-agent", "ringcap-leave-node"} {
		pod := find[*appsv1.DaemonSet](t, decode(t, render(t)), name).Spec.Template.Spec
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			require.ElementsMatch(t, documented[c.Name], c.SecurityContext.Capabilities.Add, c.Name)
		}
	}
}

// TestAgentsWriteLittleOfSys: what is the node's own is read-only but for devices, drivers and the network's sysctls; and device
// nodes are made for the module only.
func TestAgentsWriteLittleOfSys(t *testing.T) {
	for mode, makesNodes := range map[string]bool{"Load": true, "Disabled": false} {
		agent := find[*appsv1.DaemonSet](t, decode(t, render(t, "--set=agent.module.mode="+mode)), "ringcap-agent").Spec.Template.Spec.Containers[0]
		writable := map[string]bool{}
		for _, mount := range agent.VolumeMounts {
			if strings.HasPrefix(mount.MountPath, "/host/") {
				writable[mount.MountPath] = !mount.ReadOnly
				require.Equal(t, mount.ReadOnly, mount.RecursiveReadOnly != nil, mount.MountPath)
			}
		}
		require.Equal(t, map[string]bool{"/host/sys": false, "/host/sys/devices": true, "/host/sys/bus": true, "/host/proc/sys/net": true}, writable)
		require.Equal(t, makesNodes, slices.Contains(agent.SecurityContext.Capabilities.Add, "MKNOD"), mode)
	}
}

// TestImagesByDigest: each image of ours is pulled by its digest where that is given, whatever the tag, and by the tag elsewhere.
func TestImagesByDigest(t *testing.T) {
	digest := func(of string) string { return "sha256:" + strings.Repeat(of, 32) }
	images := regexp.MustCompile(`(?m)^ +image: (.*)$`).FindAllStringSubmatch(render(t,
		"--set=operator.image.tag=t,agent.image.tag=t,agent.module.build.enabled=true",
		"--set=operator.image.digest="+digest("0a")+",agent.image.digest="+digest("0b"), "--set=agent.module.build.image.digest="+digest("0c")), -1)
	require.NotEmpty(t, images)
	for _, image := range images {
		require.Regexp(t, `^ringcap.local/(operator@`+digest("0a")+"|agent@"+digest("0b")+"|builder@"+digest("0c")+")$", image[1])
	}
	out, err := helm(t, "template", "ringcap", "ringcap", "--set=agent.image.digest=sha256:0a")
	require.Error(t, err)
	require.Contains(t, out, "digest")
}

// TestOneValueMovesEveryImage: all images come from the registry of global.image.registry, but those whose repository names
// another, as values did before there was that one.
func TestOneValueMovesEveryImage(t *testing.T) {
	image := regexp.MustCompile(`(?m)^ +image: (.*)$`)
	rendered := func(args ...string) [][]string {
		args = append([]string{"--set=global.image.registry=localhost:5000/a/b,agent.module.build.enabled=true"}, args...)
		return image.FindAllStringSubmatch(render(t, args...), -1)
	}
	for _, found := range rendered() {
		require.Regexp(t, `^localhost:5000/a/b/(agent|operator|builder):`, found[1])
	}
	for _, own := range []string{"other.example/x/agent", "localhost/agent", "host:5000/agent"} {
		images := rendered("--set=agent.image.repository=" + own)
		require.Contains(t, images[0][1]+images[1][1]+images[2][1], own+":")
	}
	for _, wrong := range []string{"", "host/", "host@sha"} {
		out, err := helm(t, "template", "ringcap", "ringcap", "--set=global.image.registry="+wrong)
		require.Error(t, err, wrong)
		require.Contains(t, out, "registry")
	}
}

// TestPullSecretsReachEveryPod: no pod that the chart makes is without them.
func TestPullSecretsReachEveryPod(t *testing.T) {
	text := render(t, "--set=imagePullSecrets[0].name=secret,agent.module.build.enabled=true")
	pods := regexp.MustCompile(`(?m)^ +containers:$`).FindAllString(text, -1)
	require.NotEmpty(t, pods)
	require.Len(t, regexp.MustCompile(`(?m)^ +imagePullSecrets:\n +- name: secret$`).FindAllString(text, -1), len(pods))
}

// TestRolesForPeople: who views the cluster sees captures; to change them is part of no role that others have already.
func TestRolesForPeople(t *testing.T) {
	objects := decode(t, render(t))
	viewer, editor := find[*rbacv1.ClusterRole](t, objects, "ringcap-viewer"), find[*rbacv1.ClusterRole](t, objects, "ringcap-editor")
	require.Equal(t, "true", viewer.Labels["rbac.authorization.k8s.io/aggregate-to-view"])
	for label := range editor.Labels {
		require.NotContains(t, label, "aggregate-to")
	}
	require.Equal(t, []rbacv1.PolicyRule{
		{APIGroups: []string{"ringcap.io"}, Resources: []string{"capturerings", "clusters", "nodecaptures", "podcaptures"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"list"}},
	}, viewer.Rules)
	without := find[*rbacv1.ClusterRole](t, decode(t, render(t, "--set=podCapture.maxPerNamespace=0")), "ringcap-viewer")
	require.Equal(t, viewer.Rules, without.Rules, "ringcap doctor lists PodCaptures in any case")
	require.Contains(t, editor.Rules, viewer.Rules[1])
	for _, rule := range editor.Rules {
		if slices.Contains(rule.Verbs, "create") {
			require.Equal(t, []string{"capturerings", "clusters"}, rule.Resources)
		}
	}
}

// TestPoolsAreOwnedOnRequest: by default the operator knows no device plugin and may not write a plugin's objects. On request it may
// write those that the values name, and no others.
func TestPoolsAreOwnedOnRequest(t *testing.T) {
	require.NotContains(t, render(t), "pools")
	objects := decode(t, render(t, "--set=operator.networks.pools.enabled=true,operator.networks.pools.namespace=net",
		"--set=operator.networks.pools.configMap=config,operator.networks.pools.daemonSets={a,b}"))
	role := find[*rbacv1.Role](t, objects, "ringcap-operator-pools")
	require.Equal(t, "net", role.Namespace)
	require.Equal(t, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"config"}, Verbs: []string{"get", "update", "delete"}},
		{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, ResourceNames: []string{"a", "b"}, Verbs: []string{"patch"}},
	}, role.Rules)
	require.Equal(t, "net", find[*rbacv1.RoleBinding](t, objects, role.Name).Namespace)
	require.Subset(t, find[*appsv1.Deployment](t, objects, "ringcap-operator").Spec.Template.Spec.Containers[0].Args,
		[]string{"--pools-namespace=net", "--pools-configmap=config", "--pools-daemonset=a", "--pools-daemonset=b"})
}

// TestModuleIsBuiltWithoutPrivilege: the compiling container has no capability and no writable folder of the node. It runs between
// two loaders: the second gets what it built, and both have the key.
func TestModuleIsBuiltWithoutPrivilege(t *testing.T) {
	const values = "--set=agent.module.build.enabled=true,agent.module.signing.secretName=modules"
	agent := find[*appsv1.DaemonSet](t, decode(t, render(t, values)), "ringcap-agent").Spec.Template.Spec
	require.Len(t, agent.InitContainers, 3)
	builder := agent.InitContainers[1]
	require.Empty(t, builder.SecurityContext.Capabilities.Add)
	for _, mount := range builder.VolumeMounts {
		require.Equal(t, mount.Name == "run" || mount.Name == "usr", mount.ReadOnly, mount.Name)
		require.NotEqual(t, "signing-key", mount.Name)
	}
	for i, built := range map[int]bool{0: false, 2: true} {
		args := agent.InitContainers[i].Args
		require.Equal(t, built, slices.Contains(args, "--built-dir=/built"))
		require.Contains(t, args, "--signing-key=/signing-key")
	}
	agent = find[*appsv1.DaemonSet](t, decode(t, render(t, values, "--set=agent.module.mode=Preloaded")), "ringcap-agent").Spec.Template.Spec
	require.Len(t, agent.InitContainers, 1)
}

// TestAgentPrivileges: nothing is privileged, and only the init container may load a module, if it is to.
func TestAgentPrivileges(t *testing.T) {
	const module, all = corev1.Capability("SYS_MODULE"), corev1.Capability("ALL")
	for mode, loads := range map[string]bool{"Load": true, "Preloaded": false, "Disabled": false} {
		agent := find[*appsv1.DaemonSet](t, decode(t, render(t, "--set=agent.module.mode="+mode)), "ringcap-agent").Spec.Template.Spec
		require.Len(t, agent.InitContainers, 1)
		require.Equal(t, loads, slices.Contains(agent.InitContainers[0].SecurityContext.Capabilities.Add, module), mode)
		require.Len(t, agent.Containers, 1)
		require.NotContains(t, agent.Containers[0].SecurityContext.Capabilities.Add, module)
		for _, c := range append(agent.InitContainers, agent.Containers...) {
			require.Nil(t, c.SecurityContext.Privileged)
			require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
			require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
			require.Equal(t, []corev1.Capability{all}, c.SecurityContext.Capabilities.Drop)
		}
		leave := find[*appsv1.DaemonSet](t, decode(t, render(t, "--set=agent.module.mode="+mode)), "ringcap-leave-node").Spec.Template.Spec.InitContainers[0]
		require.Equal(t, loads, slices.Contains(leave.SecurityContext.Capabilities.Add, module), "who loads nothing unloads nothing")
		require.Equal(t, loads, slices.Contains(leave.Args, "--unload"))
	}
}
