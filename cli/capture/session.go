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
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/fleet"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Session is what a capture has made in a cluster. Remove must be called whatever happens.
type Session struct {
	Client client.Client
	Config *rest.Config
	Plan   Plan
	// Log is told what is waited for.
	Log func(format string, args ...any)

	cluster *v1.Cluster
	pods    []string
}

const poll = 250 * time.Millisecond

// Start makes the Cluster and the pods, and waits until they run.
func (s *Session) Start(ctx context.Context) error {
	s.cluster = s.Plan.Cluster()
	if err := s.Client.Create(ctx, s.cluster); err != nil {
		return fmt.Errorf("make Cluster %s over ring %s: %w", s.Plan.Name, s.Plan.Ring, err)
	}
	s.Log("made Cluster %s; waiting for its queues on %d nodes", s.Plan.Name, len(s.Plan.Nodes))
	if err := s.wait(ctx, s.queues); err != nil {
		return err
	}
	for _, node := range s.Plan.Nodes {
		pod := s.Plan.Pod(node, s.cluster)
		if err := s.Client.Create(ctx, pod); err != nil {
			return fmt.Errorf("make a pod in namespace %s: %w", s.Plan.Namespace, err)
		}
		s.pods = append(s.pods, pod.Name)
	}
	s.Log("waiting for %d pods in namespace %s", len(s.pods), s.Plan.Namespace)
	return s.wait(ctx, s.running)
}

// wait asks until there is nothing left to wait for; when ctx is done it says what it was.
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

// queues says which nodes do not have their queue yet. What the operator or a node refuses is an error.
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

// running says which pods do not run yet.
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
		if pod.Status.Phase == corev1.PodFailed {
			return "", errors.New(text + " " + pod.Status.Message)
		}
		return text, nil
	}
	return "", nil
}

// Dial is a Dial by pods/exec.
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
	// As kubectl does: WebSockets, and SPDY for what is in the way and does not know them.
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

// Remove takes away what was made, and waits until it is gone.
func (s *Session) Remove(ctx context.Context) error {
	if s.cluster == nil || s.cluster.UID == "" {
		return nil
	}
	var problems []error
	now := client.GracePeriodSeconds(0)
	for _, name := range s.pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Plan.Namespace, Name: name}}
		problems = append(problems, client.IgnoreNotFound(s.Client.Delete(ctx, pod, now)))
	}
	problems = append(problems, client.IgnoreNotFound(s.Client.Delete(ctx, s.cluster)))
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("remove what the capture made: %w: %s", err, s.byHand())
	}
	if err := s.wait(ctx, s.gone); err != nil {
		return fmt.Errorf("remove what the capture made: %w: %s", err, s.byHand())
	}
	return nil
}

func (s *Session) gone(ctx context.Context) (string, error) {
	for _, name := range slices.Sorted(slices.Values(s.pods)) {
		err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Plan.Namespace, Name: name}, &corev1.Pod{})
		if !apierrors.IsNotFound(err) {
			return "pod " + name + " is still there", err
		}
	}
	err := s.Client.Get(ctx, client.ObjectKeyFromObject(s.cluster), &v1.Cluster{})
	if !apierrors.IsNotFound(err) {
		return "Cluster " + s.Plan.Name + " is still there", err
	}
	return "", nil
}

func (s *Session) byHand() string {
	for key, value := range s.Plan.labels() {
		if strings.HasPrefix(key, v1.ResourcePrefix) {
			return fmt.Sprintf("kubectl delete clusters.ringcap.io,pods -n %s -l %s=%s", s.Plan.Namespace, key, value)
		}
	}
	return ""
}
