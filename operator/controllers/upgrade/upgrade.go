// SPDX-License-Identifier: Apache-2.0

// Package upgrade upgrades the kernel module of nodes on which another version is loaded than the agents' image has, a few nodes
// at a time. An agent's loader loads the module when its pod starts, so the pod is replaced.
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

// interval is the time between two checks of the fleet.
const interval = 15 * time.Second

// Upgrader replaces agents' pods.
type Upgrader struct {
	Client client.Client
	// Reader reads from the API server, without a cache: agents' pods are listed only when there is something to do.
	Reader client.Reader
	// Namespace and Agents select the agents' pods.
	Namespace string
	Agents    labels.Selector
	Policy    Policy
	// MaxUnavailable is the maximum number of nodes without a ready agent at a time.
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

// Once starts the upgrades that may start now.
func (u *Upgrader) Once(ctx context.Context) error {
	var captures v1alpha1.NodeCaptureList
	// There are thousands, and nobody here changes them.
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

// take replaces the agent first: without an agent, freed queues are given to nobody while their holders end.
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
