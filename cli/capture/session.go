// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/fleet"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Session creates the objects of a capture. Remove must be called in any case.
type Session struct {
	Client client.Client
	Config *rest.Config
	Plan   Plan
	// Log is called with what the session waits for.
	Log func(format string, args ...any)

	ring    *v1.CaptureRing
	cluster *v1.Cluster
	own     *v1.PodCapture
	pods    []string
	tries   int
}

const (
	poll = 250 * time.Millisecond
	// requestTimeout is the timeout of one request that creates an object.
	requestTimeout = 30 * time.Second
	// unexpected is the reason with which a kubelet refuses a pod that was scheduled for the queue of the previous capture,
	// which had the same name; maxTries limits the number of such pods.
	unexpected = "UnexpectedAdmissionError"
	maxTries   = 20
)

// Start creates the objects and waits until the pods run.
func (s *Session) Start(ctx context.Context) error {
	prepare := s.makeQueues
	if s.Plan.Own != nil {
		prepare = s.makeOwn
	}
	if err := prepare(ctx); err != nil {
		return err
	}
	for _, node := range s.Plan.Nodes {
		pod := s.Plan.Pod(node, s.owner())
		if err := s.create(ctx, pod); err != nil {
			return fmt.Errorf("make a pod in namespace %s: %w", s.Plan.Namespace, err)
		}
		s.pods = append(s.pods, pod.Name)
	}
	s.Log("waiting for %d pods in namespace %s", len(s.pods), s.Plan.Namespace)
	return s.wait(ctx, s.running)
}

// makeQueues creates the Cluster, and the ring if the plan has one, and waits for the Cluster's queues.
func (s *Session) makeQueues(ctx context.Context) error {
	if s.ring = s.Plan.MadeRing(); s.ring != nil {
		if err := s.create(ctx, s.ring); err != nil {
			return fmt.Errorf("make CaptureRing %s: %w", s.Plan.Ring, err)
		}
		s.Log("made CaptureRing %s", s.Plan.Ring)
	}
	if err := s.makeCluster(ctx); err != nil {
		return fmt.Errorf("make Cluster %s over ring %s: %w", s.Plan.Name, s.Plan.Ring, err)
	}
	s.Log("made Cluster %s; waiting for its queues on %d nodes", s.Plan.Name, len(s.Plan.Nodes))
	return s.wait(ctx, s.queues)
}

// makeOwn creates the PodCapture, and waits until the pods are captured.
func (s *Session) makeOwn(ctx context.Context) error {
	s.own = s.Plan.PodCapture()
	if err := s.create(ctx, s.own); err != nil {
		return fmt.Errorf("make a PodCapture in namespace %s: %w", s.Plan.Namespace, err)
	}
	s.Log("made PodCapture %s; waiting until %d pods are captured", s.own.Name, s.Plan.Pods)
	return s.wait(ctx, s.captured)
}

// captured returns what the PodCapture still waits for, and sets the plan's name. A refusal is an error.
func (s *Session) captured(ctx context.Context) (string, error) {
	var own v1.PodCapture
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(s.own), &own); err != nil {
		return "", err
	}
	accepted := meta.FindStatusCondition(own.Status.Conditions, v1.ConditionAccepted)
	ready := meta.FindStatusCondition(own.Status.Conditions, v1.ConditionReady)
	name := strings.TrimPrefix(own.Status.Resource, v1.ResourcePrefix)
	switch {
	case accepted == nil || ready == nil:
		return "the operator has not processed PodCapture " + own.Name + " yet", nil
	case accepted.Status == metav1.ConditionFalse && accepted.Reason != v1.ReasonPending:
		return "", fmt.Errorf("the operator does not accept the PodCapture: %s: %s", accepted.Reason, accepted.Message)
	case name == "" || own.Status.Pods < s.Plan.Pods:
		return fmt.Sprintf("%d of %d pods are captured; PodCapture %s: %s", own.Status.Pods, s.Plan.Pods, own.Name, ready.Message), nil
	}
	s.Plan.Name = name
	return "", nil
}

// owner returns the owner of the pods.
func (s *Session) owner() client.Object {
	if s.own != nil {
		return s.own
	}
	return s.cluster
}

// makeCluster creates the Cluster with a name that no other capture has.
func (s *Session) makeCluster(ctx context.Context) error {
	for i := range names {
		s.Plan.Name = name(i)
		s.cluster = s.Plan.Cluster()
		if err := s.create(ctx, s.cluster); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return fmt.Errorf("%d captures run, the maximum at a time, or are orphaned: see ringcap doctor", names)
}

// create is not cancelled by an interrupt: the session must know what exists, to delete it.
func (s *Session) create(ctx context.Context, object client.Object) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	return s.Client.Create(ctx, object)
}

// wait repeats ask until there is nothing left to wait for; when ctx is done the error names what was left.
func (s *Session) wait(ctx context.Context, ask func(context.Context) (left string, err error)) error {
	for {
		left, err := ask(ctx)
		if err == nil && left == "" {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w while waiting: %s", context.Cause(ctx), left)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting: %s", context.Cause(ctx), left)
		case <-time.After(poll):
		}
	}
}

// queues returns which node does not have its queue yet. A refusal by the operator or a node is an error.
func (s *Session) queues(ctx context.Context) (string, error) {
	var cluster v1.Cluster
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(s.cluster), &cluster); err != nil {
		return "", err
	}
	if c := meta.FindStatusCondition(cluster.Status.Conditions, v1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		return "", fmt.Errorf("the operator does not accept the Cluster: %s: %s", c.Reason, c.Message)
	}
	for _, node := range s.Plan.Nodes {
		var capture v1.NodeCapture
		if err := s.Client.Get(ctx, client.ObjectKey{Name: node.Name}, &capture); err != nil {
			return "", err
		}
		if left, err := s.tapped(&capture); left != "" || err != nil {
			return left, err
		}
		on := fleet.QueuesOn(&capture, s.Plan.Name)
		switch {
		case on == nil:
			return "node " + node.Name + " has no queue yet", nil
		case on.Ready:
		case on.Reason == v1.ReasonPending || on.Reason == "":
			return "node " + node.Name + ": " + on.Message, nil
		default:
			return "", fmt.Errorf("node %s: %s: %s", node.Name, on.Reason, on.Message)
		}
	}
	return "", nil
}

// tapped returns whether a node still has to capture pods, for a ring that was created for them. An interface may become ready
// any time; a refusal is an error.
func (s *Session) tapped(node *v1.NodeCapture) (string, error) {
	if s.ring == nil {
		return "", nil
	}
	on := fleet.RingOn(node, s.Plan.Ring)
	switch {
	case on == nil:
		return "node " + node.Name + " has not acted upon the ring yet", nil
	case len(on.Interfaces) > 0 && (on.Ready || on.Reason == v1.ReasonPodNotTapped):
		return "", nil
	case on.Ready || on.Reason == "" || on.Reason == v1.ReasonPending || on.Reason == v1.ReasonPodNotTapped:
		return strings.TrimSpace(fmt.Sprintf("node %s taps no pod yet: %s %s", node.Name, on.Message, strings.Join(on.PodsNotTapped, "; "))), nil
	}
	return "", fmt.Errorf("node %s: %s: %s", node.Name, on.Reason, on.Message)
}

// running returns which pod does not run yet.
func (s *Session) running(ctx context.Context) (string, error) {
	for i, name := range s.pods {
		var pod corev1.Pod
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Plan.Namespace, Name: name}, &pod); err != nil {
			return "", err
		}
		if pod.Status.Phase == corev1.PodRunning {
			continue
		}
		why := "it is " + string(pod.Status.Phase)
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				why = c.Message
			}
		}
		for _, c := range pod.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil {
				why = strings.TrimSpace(w.Reason + " " + w.Message)
			}
		}
		text := fmt.Sprintf("pod %s on node %s: %s", name, s.Plan.Nodes[i].Name, why)
		if pod.Status.Reason == unexpected && s.tries < maxTries {
			return text, s.again(ctx, i)
		}
		if pod.Status.Phase == corev1.PodFailed {
			return "", errors.New(text + " " + pod.Status.Message)
		}
		return text, nil
	}
	return "", nil
}

// again replaces the pod of a node.
func (s *Session) again(ctx context.Context, node int) error {
	s.tries++
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Plan.Namespace, Name: s.pods[node]}}
	if err := client.IgnoreNotFound(s.Client.Delete(ctx, old, client.GracePeriodSeconds(0))); err != nil {
		return err
	}
	pod := s.Plan.Pod(s.Plan.Nodes[node], s.owner())
	if err := s.create(ctx, pod); err != nil {
		return err
	}
	s.pods[node] = pod.Name
	return nil
}

// Dial implements Dial with pods/exec.
func (s *Session) Dial(ctx context.Context, node int, in io.Reader, out, errOut io.Writer) error {
	config := rest.CopyConfig(s.Config)
	config.Timeout = 0
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	request := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.Plan.Namespace).Name(s.pods[node]).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: container, Command: s.Plan.Command(), Stdin: true, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec)
	// As kubectl does: WebSockets, and SPDY if a proxy on the way does not support them.
	socket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, request.URL().String())
	if err != nil {
		return err
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, request.URL())
	if err != nil {
		return err
	}
	executor, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: errOut})
}

// Remove deletes what was created, and waits until it is gone.
func (s *Session) Remove(ctx context.Context) error {
	var problems []error
	for _, object := range s.made() {
		options := []client.DeleteOption{client.GracePeriodSeconds(0)}
		if uid := object.GetUID(); uid != "" { // pods' names are never used again
			options = append(options, client.Preconditions{UID: &uid})
		}
		if err := s.Client.Delete(ctx, object, options...); !apierrors.IsConflict(err) { // else another capture has the name by now
			problems = append(problems, client.IgnoreNotFound(err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("remove what the capture made: %w: %s", err, s.byHand())
	}
	if err := s.wait(ctx, s.gone); err != nil {
		return fmt.Errorf("remove what the capture made: %w: %s", err, s.byHand())
	}
	return nil
}

// made returns the objects to delete, in that order: a ring stays while a Cluster is over it.
func (s *Session) made() []client.Object {
	var objects []client.Object
	for _, name := range slices.Sorted(slices.Values(s.pods)) {
		objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Plan.Namespace, Name: name}})
	}
	if s.own != nil && s.own.UID != "" {
		objects = append(objects, s.own)
	}
	if s.cluster != nil && s.cluster.UID != "" {
		objects = append(objects, s.cluster)
	}
	if s.ring != nil && s.ring.UID != "" {
		objects = append(objects, s.ring)
	}
	return objects
}

func (s *Session) gone(ctx context.Context) (string, error) {
	for _, object := range s.made() {
		is, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			continue
		}
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), is)
		another := err == nil && object.GetUID() != "" && is.GetUID() != object.GetUID()
		if !another && !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%s %s is still there", kindOf(object), object.GetName()), err
		}
	}
	return "", nil
}

func kindOf(object client.Object) string {
	kind := fmt.Sprintf("%T", object)
	return kind[strings.LastIndex(kind, ".")+1:]
}

func (s *Session) byHand() string {
	kinds := "pods,clusters.ringcap.io,capturerings"
	if s.own != nil {
		kinds = "pods,podcaptures"
	}
	for key, value := range s.Plan.labels() {
		if strings.HasPrefix(key, v1.ResourcePrefix) {
			return fmt.Sprintf("kubectl delete %s -n %s -l %s=%s", kinds, s.Plan.Namespace, key, value)
		}
	}
	return ""
}
