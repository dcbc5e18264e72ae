// SPDX-License-Identifier: Apache-2.0

// Package upgrade has nodes whose agents' image has another kernel module than the one that is loaded, load it, a few nodes at a
// time. An agent's loader does that when its pod starts, so the pod is replaced.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// interval is the time between two looks at the fleet.
const interval = 15 * time.Second

// Upgrader replaces agents' pods.
type Upgrader struct {
	Client client.Client
	// Reader asks the API server itself: agents' pods are looked for when there is something to do only.
	Reader client.Reader
	// Namespace and Agents are where the agents' pods are, and which.
	Namespace string
	Agents    labels.Selector
	Policy    Policy
	// MaxUnavailable nodes are without a ready agent at a time, at most.
	MaxUnavailable int
	Now            func() time.Time
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Upgrader) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (u *Upgrader) Start(ctx context.Context) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := u.Once(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).WithName("upgrade").Error(err, "kernel modules are not all upgraded; it is tried again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Once begins the upgrades that may begin now.
func (u *Upgrader) Once(ctx context.Context) error {
	var captures v1alpha1.NodeCaptureList
	// Thousands of them, which nobody here changes.
	if err := u.Client.List(ctx, &captures, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list NodeCaptures: %w", err)
	}
	wanted := false
	for i := range captures.Items {
		wanted = wanted || captures.Items[i].Status.ModuleAvailable != ""
	}
	if !wanted {
		return nil
	}
	var agents corev1.PodList
	if err := u.Reader.List(ctx, &agents, client.InNamespace(u.Namespace), client.MatchingLabelsSelector{Selector: u.Agents}); err != nil {
		return fmt.Errorf("list the agents' pods: %w", err)
	}
	var errs []error
	for _, step := range choose(captures.Items, agents.Items, u.Policy, u.MaxUnavailable, u.Now()) {
		errs = append(errs, u.take(ctx, step))
	}
	return errors.Join(errs...)
}

// take replaces the agent first: without one, its queues are given to nobody while their holders end.
func (u *Upgrader) take(ctx context.Context, s step) error {
	ctrl.LoggerFrom(ctx).WithName("upgrade").Info("the agent is replaced, to load another kernel module",
		"node", s.node, "module", s.available, "evicted", s.evict)
	uid := s.agent.UID
	err := u.Client.Delete(ctx, &s.agent, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("replace the agent %s of node %s: %w", s.agent.Name, s.node, err)
	}
	var errs []error
	for _, holder := range s.evict {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: holder.Namespace, Name: holder.Name}}
		err := u.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("evict %s from node %s: %w", holder, s.node, err))
		}
	}
	return errors.Join(errs...)
}
