// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/capture"
	"github.com/ringcap/ringcap/cli/fleet"
	"github.com/ringcap/ringcap/cli/tree"
	"github.com/ringcap/ringcap/filter"
	"github.com/ringcap/ringcap/operator/api/consumers"
	"github.com/ringcap/ringcap/operator/api/sizing"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// captureFlags are the flags of ringcap capture.
type captureFlags struct {
	filter, file, image string
	duration, timeout   time.Duration
	nodes, pullSecrets  []string
	slots, snapLength   int32
}

const (
	// deadline of pods if the capture has no duration.
	deadline = 24 * time.Hour
	// removal is the timeout for deleting what was created, also after an interrupt.
	removal = time.Minute
	// maxNodes is the maximum number of streams to one user's machine.
	maxNodes = 64
)

func (a *app) capture() *cobra.Command {
	f := captureFlags{}
	cmd := &cobra.Command{
		Use:   "capture RING|pod/NAME|deploy/NAME [-f FILTER] [-w FILE] [--duration TIME]",
		Short: "a ring's or a workload's packets from all nodes, as one time-ordered pcapng",
		Long: `Creates a Cluster of one queue over the ring, and on each of its nodes an unprivileged pod that reads the queue. Streams the
packets to this machine, sorted by time, and deletes all of it at the end: after --duration, an interrupt (Ctrl-C), or when
the reader of the output exits. Interfaces are named NODE/INTERFACE in the file. Other consumers of the ring still get their
packets.

For a pod, or the pods of a Deployment, it also creates the ring, over the node's side of their interfaces, in both directions. It follows
pods that come and go on the nodes that have some at the start. Their interfaces are named NODE/NAMESPACE/POD. If you may create
PodCaptures in the namespace but no CaptureRings, it creates a PodCapture instead of ring and Cluster.

The final account lists what was lost on each node. Your connection may be too slow for a full mirror port: use -f.

Exit code 3: packets were lost, a node did not send its account, the ring was deleted meanwhile, or pods ran where nobody captured
them.`,
		Example: `  ringcap capture mirror -f 'tcp port 443' -w https.pcapng --duration 1m
  ringcap capture mirror | wireshark -k -i -
  ringcap -n shop capture deploy/web -w web.pcapng
  ringcap -n shop capture pod/web-6d5f -f 'port 53' | tcpdump -nr -
  ringcap capture mirror --node worker-1 --node worker-2 | tcpdump -nr -`,
		ValidArgsFunction: a.completeRings,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("give one RING, pod/NAME or deploy/NAME")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.filter, "filter", "f", "", "only what this pcap-filter(7) expression lets through; names are not looked up")
	flags.StringVarP(&f.file, "write", "w", "-", "file to write, - for standard output")
	flags.DurationVar(&f.duration, "duration", 0, "time to capture, 0 for until it is interrupted")
	flags.StringSliceVar(&f.nodes, "node", nil, "capture on this node only; may be given more than once")
	flags.StringArrayVar(&f.pullSecrets, "image-pull-secret", nil, "secret in the pods' namespace to pull the image with (repeatable; default: those of the agents' names)")
	flags.StringVar(&f.image, "image", "", "image that has rcstream (default: the agents', which is on all nodes)")
	flags.Int32Var(&f.slots, "slots", v1.DefaultSlots, "packets that the queue on each node holds, 16 to 4194304")
	flags.Int32Var(&f.snapLength, "snap-length", 0, "for pod/NAME and deploy/NAME: bytes captured of a packet, 64 to 65535, 0 for all of them")
	flags.DurationVar(&f.timeout, "timeout", 2*time.Minute, "longest time to wait for queues and pods")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.runCapture(cmd.Context(), args[0], f) }
	return cmd
}

func (f captureFlags) check() error {
	switch {
	case f.duration < 0 || f.duration > deadline:
		return usagef("--duration: %s is not between 0 and %s", f.duration, deadline)
	case f.slots < 16 || f.slots > 4194304:
		return usagef("--slots: %d is not between 16 and 4194304", f.slots)
	case f.snapLength != 0 && f.snapLength < 64 || f.snapLength > sizing.MaxSnapLength:
		return usagef("--snap-length: %d is neither 0 nor between 64 and %d", f.snapLength, sizing.MaxSnapLength)
	case f.timeout <= 0:
		return usagef("--timeout: %s is not a duration above 0", f.timeout)
	}
	return nil
}

// checkFilter refuses an invalid expression before any object is created, if there is a compiler; else the nodes do.
func checkFilter(ctx context.Context, expression string) error {
	if expression == "" {
		return nil
	}
	if _, err := filter.Compile(ctx, expression, wholePacket); err != nil && !errors.Is(err, filter.ErrCompilerUnavailable) {
		return usagef("--filter %q: %w", expression, err)
	}
	return nil
}

func (a *app) runCapture(ctx context.Context, target string, f captureFlags) error {
	if err := errors.Join(f.check(), checkFilter(ctx, f.filter)); err != nil {
		return err
	}
	if strings.Contains(target, "/") {
		return a.captureWorkload(ctx, target, f)
	}
	c, s, err := a.snapshot(ctx)
	if err != nil {
		return err
	}
	plan, missing, err := planCapture(ctx, c, s, target, f)
	if err != nil {
		return err
	}
	return a.captureAsPlanned(ctx, c, plan, missing, f)
}

// captureWorkload captures pods, and reports nodes that they moved to.
func (a *app) captureWorkload(ctx context.Context, target string, f captureFlags) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	pods, err := findWorkload(ctx, c, target)
	if err != nil {
		return err
	}
	var known *fleet.Snapshot
	if !onlyOwn(ctx, c) {
		s, err := fleet.Read(ctx, c, a.now())
		if err != nil {
			return err
		}
		known = &s
	}
	plan, missing, err := pods.plan(ctx, c, known, f)
	if err != nil {
		return err
	}
	if err := a.captureAsPlanned(ctx, c, plan, missing, f); err != nil {
		return err
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
	defer cancel()
	if err := pods.strays(late, c, plan, f); err != nil {
		a.log("%v", err)
		return errBad
	}
	return nil
}

// captureAsPlanned creates the objects, captures, and deletes them in any case.
func (a *app) captureAsPlanned(ctx context.Context, c *connection, plan capture.Plan, missing []string, f captureFlags) error {
	out, err := a.captureFile(f.file)
	if err != nil {
		return err
	}
	defer out.Close()
	for _, m := range missing {
		a.log("not captured: %s", m)
	}
	session := &capture.Session{Client: c, Config: c.config, Plan: plan, Log: a.log}
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
		defer cancel()
		if err := session.Remove(late); err != nil {
			a.log("%v", err)
		}
	}()
	if err := a.startCapture(ctx, session, f.timeout); err != nil {
		return err
	}
	return a.stream(ctx, session, f, out, len(missing) > 0)
}

func (a *app) log(format string, args ...any) { fmt.Fprintf(a.Err, "ringcap: "+format+"\n", args...) }

func (a *app) startCapture(ctx context.Context, session *capture.Session, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("gave up after %s (see --timeout)", timeout))
	defer cancel()
	return session.Start(ctx)
}

func (a *app) stream(ctx context.Context, session *capture.Session, f captureFlags, out io.Writer, bad bool) error {
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan error, 1)
	go func() {
		watched <- session.Watch(stop)
		cancel()
	}()
	buffered := bufio.NewWriterSize(out, 1<<16)
	results, disordered, err := capture.Stream(stop, session.Plan, session.Dial, flusher{buffered}, func() {
		a.log("capturing on %s; Ctrl-C ends it", nodeNames(session.Plan))
		if f.duration > 0 {
			time.AfterFunc(f.duration, cancel)
		}
	})
	if disordered > 0 {
		a.log("%s packets came too late for their position in the file: see the nodes' clocks", tree.Number(disordered))
	}
	if err != nil {
		return err
	}
	cancel()
	deleted := <-watched
	if deleted != nil {
		a.log("%v", deleted)
	}
	return a.summary(results, bad || deleted != nil)
}

// flusher flushes each write; pcapgo has its own buffer.
type flusher struct{ *bufio.Writer }

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.Flush()
	}
	return n, err
}

func nodeNames(plan capture.Plan) string {
	var names []string
	for _, n := range plan.Nodes {
		names = append(names, n.Name+" "+strings.Join(n.Interfaces, ","))
	}
	return strings.Join(names, "; ")
}

// summary prints what each node sent, and what was lost there.
func (a *app) summary(results []capture.Result, bad bool) error {
	var packets, lost, truncated int64
	failed := 0
	for _, r := range results {
		packets, lost, truncated = packets+r.Packets, lost+r.Lost(), truncated+r.Truncated
		text := fmt.Sprintf("%s: %s packets in the file of %s read", r.Node, tree.Number(r.Packets), tree.Number(r.Read))
		if r.Lost() > 0 {
			text += fmt.Sprintf(", lost %s (full %s, unattended %s, nomem %s)", tree.Number(r.Lost()), tree.Number(r.Full), tree.Number(r.Unattended), tree.Number(r.NoMemory))
		}
		if r.Truncated > 0 {
			text += fmt.Sprintf(", %s cut to at most %s bytes", tree.Number(r.Truncated), tree.Number(int64(r.TruncatedTo)))
		}
		if r.Err != nil {
			failed++
			text = fmt.Sprintf("%s: %s packets in the file, then: %v", r.Node, tree.Number(r.Packets), r.Err)
		}
		a.log("%s", text)
	}
	if truncated > 0 {
		a.log("%s packets captured, %s of them cut (see the ring's spec.snapLength), %s lost", tree.Number(packets), tree.Number(truncated), tree.Number(lost))
	} else {
		a.log("%s packets captured, %s lost", tree.Number(packets), tree.Number(lost))
	}
	switch {
	case failed == len(results):
		return errors.New("no node captured to the end")
	case bad || failed > 0 || lost > 0:
		return errBad
	}
	return nil
}

// captureFile opens the output.
func (a *app) captureFile(path string) (io.WriteCloser, error) {
	if path != "-" {
		return os.Create(path)
	}
	if isTerminal(a.Out) {
		return nil, usagef("standard output is a terminal: give -w FILE, or pipe it into a program (| wireshark -k -i -)")
	}
	return keepOpen{a.Out}, nil
}

type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// planCapture decides where to capture. missing lists the nodes of the ring that cannot capture, and why.
func planCapture(ctx context.Context, c *connection, s fleet.Snapshot, name string, f captureFlags) (plan capture.Plan, missing []string, err error) {
	ring := s.Ring(name)
	if ring == nil {
		return plan, nil, noRing(s, name)
	}
	if err := admitted(ctx, c, ring); err != nil {
		return plan, nil, err
	}
	plan = newPlan(c, f, rand.String(5))
	plan.Ring, plan.RingUID = name, ring.UID
	placements := s.Placements(name)
	for _, p := range placements {
		switch {
		case len(f.nodes) > 0 && !slices.Contains(f.nodes, p.Node.Name):
		case p.Problem != "":
			missing = append(missing, "node "+p.Node.Name+": "+p.Problem)
		default:
			plan.Nodes = append(plan.Nodes, capture.Node{Name: p.Node.Name, Interfaces: p.Status.Interfaces})
		}
	}
	for _, want := range f.nodes {
		if !slices.ContainsFunc(placements, func(p fleet.Placement) bool { return p.Node.Name == want }) {
			return plan, nil, fmt.Errorf("--node: ring %s is not on a node %s", name, want)
		}
	}
	if len(plan.Nodes) == 0 {
		return plan, nil, fmt.Errorf("ring %s can be captured on no node: %s", name, strings.Join(append(missing, "see ringcap status "+name), "; "))
	}
	return finishPlan(ctx, c, plan, missing)
}

// admitted refuses a capture if its pods may not have the ring's packets, and returns how to permit them.
func admitted(ctx context.Context, c *connection, ring *v1.CaptureRing) error {
	rule := consumers.Rule{consumers.OfRing(ring.Name, ring.Spec.Consumers)}
	err := rule.Check(c.namespace, func(name string) (map[string]string, error) {
		var namespace corev1.Namespace
		err := c.Get(ctx, client.ObjectKey{Name: name}, &namespace)
		return namespace.Labels, err
	})
	if err == nil {
		return nil
	}
	advice := ""
	if ring.Spec.Consumers != nil && len(ring.Spec.Consumers.Namespaces) > 0 {
		advice = fmt.Sprintf("capture in a namespace that the ring admits (--namespace %s), or ", ring.Spec.Consumers.Namespaces[0])
	}
	return fmt.Errorf("a capture in namespace %s may not have the packets of ring %s: %w\n%sadmit this one: %s",
		c.namespace, ring.Name, err, advice, fleet.Admit(ring, c.namespace))
}

// newPlan returns a plan without a ring and nodes.
func newPlan(c *connection, f captureFlags, id string) capture.Plan {
	plan := capture.Plan{
		ID: id, Namespace: c.namespace, Image: f.image, Filter: f.filter, Slots: f.slots, Deadline: deadline,
	}
	for _, name := range f.pullSecrets {
		plan.PullSecrets = append(plan.PullSecrets, corev1.LocalObjectReference{Name: name})
	}
	if f.duration > 0 {
		plan.Deadline = f.duration + f.timeout + removal
	}
	return plan
}

// finishPlan limits the number of nodes, and sets the pods' image.
func finishPlan(ctx context.Context, c client.Client, plan capture.Plan, missing []string) (capture.Plan, []string, error) {
	if len(plan.Nodes) > maxNodes {
		return plan, nil, fmt.Errorf("there are %d nodes to capture on: name up to %d of them with --node", len(plan.Nodes), maxNodes)
	}
	if plan.Image != "" {
		return plan, missing, nil
	}
	agents, err := agentPods(ctx, c)
	if err != nil {
		return plan, missing, err
	}
	plan.Image = agents.Containers[0].Image
	if len(plan.PullSecrets) == 0 {
		plan.PullSecrets = agents.ImagePullSecrets
	}
	return plan, missing, nil
}

// agentPods returns the agents' pods, with at least one container: every node of a ring has its image.
func agentPods(ctx context.Context, c client.Client) (corev1.PodSpec, error) {
	var sets appsv1.DaemonSetList
	if err := c.List(ctx, &sets, ours); err != nil {
		return corev1.PodSpec{}, fmt.Errorf("find the agents' image: %w: give --image", err)
	}
	for _, set := range sets.Items {
		if set.Labels["app.kubernetes.io/component"] == "agent" && len(set.Spec.Template.Spec.Containers) > 0 {
			return set.Spec.Template.Spec, nil
		}
	}
	return corev1.PodSpec{}, errors.New("no DaemonSet of agents has the chart's labels: give --image")
}
