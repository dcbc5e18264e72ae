// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringcap/ringcap/cli/capture"
	"github.com/ringcap/ringcap/cli/doctor"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

// now is a few seconds after the reports in testdata.
var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// objects reads a file of manifests.
func objects(t *testing.T, file string) []client.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	decoder := serializer.NewCodecFactory(Scheme(), serializer.EnableStrict).UniversalDeserializer()
	var all []client.Object
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object, _, err := decoder.Decode([]byte(document), nil, nil)
		require.NoError(t, err, document)
		all = append(all, object.(client.Object))
	}
	return all
}

// over makes an app with a cluster that has some objects.
func over(t *testing.T, have []client.Object) (*app, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	scheme := Scheme()
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeRoot)
	}
	phase := func(o client.Object) []string { return []string{string(o.(*corev1.Pod).Status.Phase)} }
	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).
		WithIndex(&corev1.Pod{}, "status.phase", phase).WithRuntimeObjects(runtimeObjects(have)...).Build()
	agents := agentsOf(t, have)
	out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
	return &app{
		Streams: Streams{In: strings.NewReader(""), Out: out, Err: errOut}, version: "0.1.0",
		now:     func() time.Time { return now },
		connect: func() (*connection, error) { return &connection{Client: c, namespace: "default", agents: agents}, nil },
	}, out, errOut
}

func runtimeObjects(have []client.Object) []runtime.Object {
	var all []runtime.Object
	for _, o := range have {
		all = append(all, o)
	}
	return all
}

// golden runs a command line over testdata/FLEET.yaml and compares with testdata/NAME.golden.
func golden(t *testing.T, fleet, name string, code int, args ...string) {
	t.Helper()
	a, out, errOut := over(t, objects(t, fleet+".yaml"))
	got := a.run(t.Context(), append([]string{"ringcap"}, args...))
	require.Equal(t, code, got, "%s%s", out, errOut)
	all := out.String() + errOut.String()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(all), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "go test ./cli/command -update writes it")
	require.Equal(t, string(want), all)
}

func TestGolden(t *testing.T) {
	for name, test := range map[string]struct {
		fleet string
		code  int
		args  []string
	}{
		"status-healthy":      {"healthy", ExitFine, []string{"status"}},
		"status-healthy-json": {"healthy", ExitFine, []string{"status", "-o", "json"}},
		"status-trouble":      {"trouble", ExitBad, []string{"status"}},
		"status-one":          {"trouble", ExitFine, []string{"status", "calm"}},
		"status-inline":       {"inline", ExitBad, []string{"status"}},
		"doctor-inline":       {"inline", ExitBad, []string{"doctor"}},
		"status-no-ring":      {"trouble", ExitFailed, []string{"status", "none"}},
		"status-many":         {"many", ExitFine, []string{"status"}},
		"doctor-many":         {"many", ExitBad, []string{"doctor"}},
		"top-many":            {"many", ExitFine, []string{"top", "--count", "1"}},
		"doctor-healthy":      {"healthy", ExitFine, []string{"doctor"}},
		"doctor-trouble":      {"trouble", ExitBad, []string{"doctor"}},
		"doctor-trouble-yaml": {"trouble", ExitBad, []string{"doctor", "-o", "yaml"}},
		"explain-captured":    {"healthy", ExitFine, []string{"explain", "mirror", "tcp", "10.0.0.1:40000", "10.0.0.2:443"}},
		"explain-bpf":         {"healthy", ExitBad, []string{"explain", "mirror", "tcp", "10.0.0.1:40000", "10.0.0.2:22"}},
		"explain-vlan":        {"healthy", ExitFine, []string{"explain", "mirror", "tcp", "10.0.0.1:40000", "10.0.0.2:22", "--vlan", "7"}},
		"explain-rule":        {"healthy", ExitBad, []string{"explain", "mirror", "tcp", "10.0.9.7:9100", "10.0.0.2:1"}},
		"explain-default":     {"healthy", ExitBad, []string{"explain", "mirror", "udp", "10.0.9.7:9100", "10.0.0.2:1", "-o", "yaml"}},
		"explain-ipv6":        {"healthy", ExitFine, []string{"explain", "mirror", "udp", "[2001:db8::1]:53", "[2001:db9::2]:53"}},
		"explain-nowhere":     {"trouble", ExitBad, []string{"explain", "lonely", "icmp", "10.0.9.7", "10.0.0.2"}},
		"explain-port":        {"trouble", ExitUsage, []string{"explain", "lonely", "tcp", "10.0.9.7", "10.0.0.2:1"}},
		"explain-versions":    {"trouble", ExitUsage, []string{"explain", "lonely", "tcp", "10.0.9.7:1", "[2001:db8::1]:1"}},
		"top-first":           {"healthy", ExitFine, []string{"top", "--count", "1"}},
		"top-interval":        {"healthy", ExitUsage, []string{"top", "--interval", "1ms"}},
		"capture-filter":      {"healthy", ExitUsage, []string{"capture", "mirror", "-f", "tcp prt 80"}},
		"capture-nowhere":     {"trouble", ExitFailed, []string{"capture", "lonely"}},
		"capture-node":        {"healthy", ExitFailed, []string{"capture", "mirror", "--node", "worker-9"}},
		"capture-deploy":      {"healthy", ExitFailed, []string{"capture", "deploy/web"}},
		"capture-unnamed":     {"trouble", ExitFailed, []string{"capture", "mirror"}},
		"capture-kind":        {"healthy", ExitUsage, []string{"capture", "svc/web"}},
		"capture-duration":    {"healthy", ExitUsage, []string{"capture", "mirror", "--duration", "-1s"}},
		"usage-output":        {"healthy", ExitUsage, []string{"status", "-o", "xml"}},
		"usage-argument":      {"healthy", ExitUsage, []string{"doctor", "me"}},
		"usage-command":       {"healthy", ExitUsage, []string{"cure"}},
		"complete-rings":      {"trouble", ExitFine, []string{"__complete", "status", ""}},
	} {
		t.Run(name, func(t *testing.T) { golden(t, test.fleet, name, test.code, test.args...) })
	}
}

// TestTheReadmeShowsAStatus: as the command prints it, not as somebody remembers it.
func TestTheReadmeShowsAStatus(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	printed, err := os.ReadFile(filepath.Join("testdata", "status-healthy.golden"))
	require.NoError(t, err)
	require.Contains(t, string(page), "$ ringcap status\n"+string(printed)+"```\n")
}

func TestNothingInstalled(t *testing.T) {
	a, out, _ := over(t, nil)
	require.Equal(t, ExitFine, a.run(t.Context(), []string{"kubectl-ringcap", "status"}))
	require.Contains(t, out.String(), "no CaptureRings")
	out.Reset()
	require.Equal(t, ExitBad, a.run(t.Context(), []string{"kubectl-ringcap", "doctor"}))
	require.Contains(t, out.String(), "operator: is not installed")
	require.Contains(t, out.String(), "agents: are not installed")
}

// TestDoctorBeforePodCaptures: with a release that has no PodCaptures yet, no capture can have left any.
func TestDoctorBeforePodCaptures(t *testing.T) {
	unknown := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, is := list.(*v1.PodCaptureList); is {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: v1.GroupVersion.Group, Kind: "PodCapture"}}
		}
		return nil
	}}
	var facts doctor.Facts
	workloads(t.Context(), fake.NewClientBuilder().WithScheme(Scheme()).WithInterceptorFuncs(unknown).Build(), &facts)
	require.Empty(t, facts.Unreadable)
}

// TestACaptureSaysWhatWasCut: packets that are not whole in the file are not lost, and not what somebody wants who does not know.
func TestACaptureSaysWhatWasCut(t *testing.T) {
	var said bytes.Buffer
	a := &app{Streams: Streams{Err: &said}}
	require.NoError(t, a.summary([]capture.Result{
		{Node: "a", Packets: 51, Truncated: 51, TruncatedTo: 1536, Account: capture.Account{Read: 51}},
		{Node: "b", Packets: 2, Account: capture.Account{Read: 2}},
	}, false))
	require.Equal(t, "ringcap: a: 51 packets in the file of 51 read, 51 cut to at most 1,536 bytes\n"+
		"ringcap: b: 2 packets in the file of 2 read\n"+
		"ringcap: 53 packets captured, 51 of them cut (see the ring's spec.snapLength), 0 lost\n", said.String())
}
