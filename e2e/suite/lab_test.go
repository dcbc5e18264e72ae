// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/command"
)

// The nodes of the lab: one with each engine.
const (
	ebpf = "node-ebpf"
	kmod = "node-kmod"
)

var nodes = []string{ebpf, kmod}

// The namespaces of ringcap, of the demo's consumers and of the suite's own pods.
const (
	system = "ringcap-system"
	demo   = "ringcap-demo"
	pods   = "ringcap-suite"
)

// Lab is the demo's cluster as the cases find it: up, with ringcap, ring mirror and its consumers ready.
type Lab struct {
	client.Client
	config  *rest.Config
	clients *kubernetes.Clientset
	root    string // of the repository
	work    string // out/suite/work: a folder for each case, and what all use
	trace   string // a capture of 100,000 packets or more, to replay
	env     []string
	found   map[string]bool // the objects that were there before any case
	turn    sync.RWMutex    // held by a case that needs the lab for itself, shared by those that run together
	failed  atomic.Bool     // a case since the last tidy
}

var (
	lab     Lab
	opening sync.Once
	closed  error // why the lab cannot be used

	// interrupted ends when a signal asks the suite to end.
	interrupted, _ = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
)

// TestMain lets the case that is interrupted clean up, and then fails the run. A reader of the output that goes away does not end it.
func TestMain(m *testing.M) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	status := m.Run()
	if interrupted.Err() != nil {
		status = 130
	}
	os.Exit(status)
}

// How long something may take before it counts as hung: a command here (some build images), a command in a pod, and what is to be refused
// or answers at once.
const (
	commandTime = 30 * time.Minute
	execTime    = 5 * time.Minute
	answerTime  = 2 * time.Minute
)

// start gives a case the lab for itself. What it leaves is removed when all else of its clean-up is done. Without a cluster it skips the
// case.
func start(t *testing.T) *Case {
	t.Helper()
	c := newCase(t)
	c.turn.Lock()
	c.Cleanup(func() { c.leave(c.turn.Unlock) })
	c.begin()
	return c
}

// together lets a case that sends no packets run beside others of its kind, once all cases that need the lab for themselves are done. What
// they leave the last of them removes.
func together(t *testing.T) *Case {
	t.Helper()
	c := newCase(t)
	t.Parallel()
	c.turn.RLock()
	c.Cleanup(func() { c.leave(c.turn.RUnlock) })
	c.begin()
	return c
}

// leave ends a case's turn, and removes what it left, unless others still run.
func (c *Case) leave(unlock func()) {
	if c.Failed() {
		c.failed.Store(true)
	}
	unlock()
	if c.turn.TryLock() {
		defer c.turn.Unlock()
		c.tidy()
	}
}

func newCase(t *testing.T) *Case {
	t.Helper()
	if os.Getenv("RINGCAP_SUITE") == "" {
		t.Skip("changes the demo's cluster, which must be up: make demo, then e2e/suite/run (or RINGCAP_SUITE=1 go test ./e2e/suite)")
	}
	unlessInterrupted(t)
	c := &Case{TB: t, Lab: &lab, test: t.Context(), mine: map[string]bool{}}
	var interrupt context.CancelCauseFunc
	c.ctx, interrupt = context.WithCancelCause(t.Context())
	context.AfterFunc(interrupted, func() { interrupt(context.Cause(interrupted)) })
	opening.Do(func() { closed = c.try(c.open) })
	require.NoError(t, closed, "the lab is not ready for the suite; if no cluster is up, run 'make demo' first")
	return c
}

// begin makes the case's folder and notes when it began.
func (c *Case) begin() {
	unlessInterrupted(c)
	c.dir = filepath.Join(c.work, c.Name())
	require.NoError(c, os.RemoveAll(c.dir))
	require.NoError(c, os.MkdirAll(c.dir, 0o755))
	c.began = c.revision()
}

// unlessInterrupted skips a case that would begin after an interrupt. The report says that it was not run.
func unlessInterrupted(t testing.TB) {
	t.Helper()
	if interrupted.Err() != nil {
		t.Skip(context.Cause(interrupted))
	}
}

// open finds the cluster, and makes what all cases use.
func (c *Case) open() {
	root, err := filepath.Abs("../..")
	require.NoError(c, err)
	state := filepath.Join(root, "out/cluster")
	kubeconfig := filepath.Join(state, "pki/admin.kubeconfig")
	c.root, c.work = root, filepath.Join(root, "out/suite/work")
	c.dir, c.trace = c.work, filepath.Join(c.work, "input.pcap")
	c.env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "CGO_ENABLED=0",
		"PATH="+filepath.Join(state, "bin")+":"+filepath.Join(root, "out/bin")+":"+os.Getenv("PATH"))
	c.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(c, err)
	c.config.QPS = -1 // cases poll
	limited := rest.CopyConfig(c.config)
	limited.Timeout = answerTime
	c.Client, err = client.New(limited, client.Options{Scheme: command.Scheme()})
	require.NoError(c, err)
	c.clients, err = kubernetes.NewForConfig(limited)
	require.NoError(c, err)
	c.prepare()
}

// prepare makes the image of the cases' pods, the capture that they replay, and their namespace, which may have packets of ring mirror.
func (c *Case) prepare() {
	require.NoError(c, os.MkdirAll(c.work, 0o755))
	c.provision("image_make")
	c.run("e2e/cluster/load-images")
	c.bash("kubectl create namespace " + pods + " --dry-run=client -o yaml | kubectl apply -f -")
	c.run("kubectl", "patch", "capturering", "mirror", "--type=merge", "-p",
		fmt.Sprintf(`{"spec": {"consumers": {"namespaces": [%q, %q, "default"]}}}`, demo, pods))
	c.makeTrace(c.trace, 100_000)
	c.ready(120)
	c.found = map[string]bool{}
	for _, object := range c.objects() {
		c.found[nameOf(object)] = true
	}
}

// ready waits for all rollouts, rings, queues and pods.
func (c *Case) ready(seconds int) {
	c.saysNothing(seconds, "state_rollouts; state_unready; state_pods")
}

// saysNothing waits until functions of e2e/demo/state.sh, which say what is not ready, have nothing to say.
func (c *Case) saysNothing(seconds int, functions string) {
	c.until(seconds, functions, func() { require.Empty(c, c.provision("eval", functions)) })
}

// provision calls a function of the shell's.
func (c *Case) provision(words ...string) string {
	return c.run(append([]string{"e2e/suite/provision"}, words...)...)
}

// run runs a program at the repository's root, with kubectl, helm and ringcap in PATH, and returns what it printed.
func (c *Case) run(command ...string) string {
	said, err := c.pipe("", command...)
	c.Logf("%s\n%s", strings.Join(command, " "), said)
	require.NoError(c, err)
	return said
}

// bash runs a script, and fails the case when one of its commands fails.
func (c *Case) bash(script string, args ...string) string {
	return c.run(append([]string{"bash", "-o", "pipefail", "-ec", script, "bash"}, args...)...)
}

// pipe runs a program with an input, and logs nothing. The error has what the program said besides.
func (c *Case) pipe(stdin string, command ...string) (string, error) {
	return c.pipeWithin(commandTime, stdin, command...)
}

// pipeWithin is pipe for a program that may take so long.
func (c *Case) pipeWithin(limit time.Duration, stdin string, command ...string) (string, error) {
	var out, errs bytes.Buffer
	err := within(c.context(), limit, func(ctx context.Context) error {
		cmd := c.command(ctx, command...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
		return cmd.Run()
	})
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, &errs)
	}
	return strings.TrimSpace(out.String()), err
}

// within lets do take so long. The error of what is not done then says that it hung.
func within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("hung: it did not end within %s and was stopped", limit))
	defer cancel()
	err := do(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return err
}

// command finds the program in the PATH that it gives it. What it has started itself ends with it when the context does.
func (c *Case) command(ctx context.Context, command ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "env", command...)
	cmd.Dir, cmd.Env = c.root, slices.Concat(c.env, []string{"RINGCAP_SUITE_WORK=" + c.dir})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// Not SIGKILL: helm would leave a pending upgrade, after which it refuses the clean-up's.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second // then it is killed, and others that have its output open are not waited for
	return cmd
}

// on runs a shell script as root on a node, in its namespaces, and returns what it printed.
func (c *Case) on(node, script string) string {
	said, err := c.pipeWithin(execTime, "", "e2e/cluster/node-exec", node, script)
	require.NoError(c, err, "%s printed: %s", node, said)
	return said
}

// onAll runs a script on each node, and returns what they printed, one after the other.
func (c *Case) onAll(script string) string {
	var said []string
	for _, node := range nodes {
		said = append(said, c.on(node, script))
	}
	return strings.Join(said, "\n")
}

// kernelIsFine fails the case when the kernel with the module has complained.
func (c *Case) kernelIsFine() {
	log := c.on(kmod, "dmesg")
	require.NotEmpty(c, log)
	said, err := c.pipe(log, "e2e/vm/complaints", "-")
	require.NoError(c, err, "%s's kernel complains:\n%s", kmod, said)
}

// upgrade changes values of the release, and waits for its pods. When the case ends the values are as they were.
func (c *Case) upgrade(values string) {
	set := func(words ...string) {
		c.run(append([]string{"helm", "upgrade", "ringcap", "charts/ringcap", "--namespace", system}, words...)...)
		c.rolledOut(180, "daemonset", system, "ringcap-agent")
		c.rolledOut(180, "deployment", system, "ringcap-operator")
	}
	if !c.mine["values"] {
		c.mine["values"] = true
		before := c.write(c.file("values.yaml"), c.run("helm", "get", "values", "ringcap", "--namespace", system, "-o", "yaml"))
		c.Cleanup(func() { set("--reset-values", "-f", before) })
	}
	set("--reuse-values", "--set", values)
}

// file is the path of a file of the case's own.
func (c *Case) file(name string) string { return filepath.Join(c.dir, name) }

// write writes a file, and returns its path.
func (c *Case) write(path, text string) string {
	require.NoError(c, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// read is what is in a file, by a path in the repository or a whole one.
func (c *Case) read(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.root, path)
	}
	text, err := os.ReadFile(path)
	require.NoError(c, err)
	return string(text)
}
