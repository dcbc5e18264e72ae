// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"fmt"
	"io"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DaemonSet waits until a DaemonSet has a ready pod on each of its nodes.
func DaemonSet(ctx context.Context, c client.Client, key client.ObjectKey, out io.Writer) error {
	return until(ctx, out, func(ctx context.Context) (string, error) {
		var set appsv1.DaemonSet
		if err := c.Get(ctx, key, &set); err != nil {
			return "", err
		}
		switch s := set.Status; {
		case s.ObservedGeneration < set.Generation:
			return fmt.Sprintf("the pods of DaemonSet %s are not made yet", key.Name), nil
		case s.NumberReady >= s.DesiredNumberScheduled:
			return "", nil
		}
		var pods corev1.PodList
		err := c.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels(set.Spec.Selector.MatchLabels))
		return describePods(&set, pods.Items), err
	})
}

func describePods(set *appsv1.DaemonSet, pods []corev1.Pod) string {
	text := fmt.Sprintf("%d of %d nodes are done", set.Status.NumberReady, set.Status.DesiredNumberScheduled)
	for i := range pods {
		if why := unready(&pods[i]); why != "" {
			text += "\n  " + why
		}
	}
	return text
}

// unready returns why a pod is not ready, in the words of its containers or its scheduler; empty if it is ready.
func unready(pod *corev1.Pod) string {
	where := pod.Spec.NodeName
	why := string(pod.Status.Phase)
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return ""
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			where, why = "no node yet", c.Message
		}
	}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		for _, ended := range []*corev1.ContainerStateTerminated{c.LastTerminationState.Terminated, c.State.Terminated} {
			if ended != nil && ended.ExitCode != 0 {
				why = strings.TrimSpace(ended.Message)
			}
		}
	}
	return fmt.Sprintf("pod %s (%s): %s", pod.Name, where, why)
}
