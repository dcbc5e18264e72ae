// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/doctor"
	"github.com/ringcap/ringcap/cli/fleet"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func (a *app) doctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "what this cluster lacks for capturing, and how to fix it",
		Long: `Checks the custom resources, the operator, the agents, every node's report, engines and why a node has no kernel
module, rings and Clusters, queues without a consumer, pods that wait for queues, loss, and orphaned captures.
Each finding contains what to do.

Exit code 3: there is a finding of severity Error. Warnings and notes do not count.`,
		Example: `  ringcap doctor
  ringcap doctor -o json | jq '.findings[] | select(.severity == "Error")'`,
		Args: noArgs,
	}
	o := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		facts, err := a.facts(cmd.Context(), c)
		if err != nil {
			return err
		}
		report := doctor.Diagnose(facts)
		if err := o.write(a.Out, report, func(w io.Writer) error { return doctor.Text(w, report) }); err != nil {
			return err
		}
		if report.Has(doctor.Error) {
			return errBad
		}
		return nil
	}
	return cmd
}

// facts reads all that the checks need. If the user may not read something, it is noted; if the API server does not answer, it
// is an error.
func (a *app) facts(ctx context.Context, c *connection) (doctor.Facts, error) {
	f := doctor.Facts{CLI: a.version}
	for _, kind := range []string{"CaptureRing", "Cluster", "NodeCapture"} {
		_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: v1.GroupVersion.Group, Kind: kind}, v1.GroupVersion.Version)
		switch {
		case meta.IsNoMatchError(err):
			f.Missing = append(f.Missing, kind)
		case err != nil:
			return f, fmt.Errorf("ask the API server for its kinds: %w", err)
		}
	}
	if len(f.Missing) > 0 {
		return f, nil
	}
	var err error
	if f.Snapshot, err = fleet.Read(ctx, c, a.now()); err != nil {
		return f, err
	}
	f.Ask(ctx, c.agents)
	if f.Denied != "" {
		f.Unreadable = append(f.Unreadable, f.Denied)
	}
	if f.LeasesDenied != "" {
		f.Unreadable = append(f.Unreadable, f.LeasesDenied)
	}
	workloads(ctx, c, &f)
	return f, nil
}

// ours selects the chart's objects.
var ours = client.MatchingLabels{"app.kubernetes.io/name": "ringcap"}

func workloads(ctx context.Context, c client.Client, f *doctor.Facts) {
	var (
		deployments appsv1.DeploymentList
		daemonSets  appsv1.DaemonSetList
		pods, waits corev1.PodList
		temporary   v1.PodCaptureList
	)
	list := func(into client.ObjectList, options ...client.ListOption) {
		// A cluster from before PodCaptures has none.
		if err := c.List(ctx, into, options...); err != nil && !meta.IsNoMatchError(err) {
			kind := fmt.Sprintf("%T", into)
			f.Unreadable = append(f.Unreadable, fmt.Sprintf("cannot list %s: %v", kind[strings.LastIndexByte(kind, '.')+1:], err))
		}
	}
	list(&deployments, ours)
	list(&daemonSets, ours)
	list(&pods, ours)
	list(&waits, client.MatchingFields{"status.phase": string(corev1.PodPending)})
	list(&temporary, client.HasLabels{doctor.TemporaryLabel})
	for _, d := range deployments.Items {
		if d.Labels["app.kubernetes.io/component"] == "operator" {
			f.Operators = append(f.Operators, d)
		}
	}
	for _, d := range daemonSets.Items {
		if d.Labels["app.kubernetes.io/component"] == "agent" {
			f.Agents = append(f.Agents, d)
		}
	}
	f.Pods, f.Temporary = pods.Items, temporary.Items
	for _, pod := range waits.Items {
		if len(doctor.Wants(pod)) > 0 {
			f.Pending = append(f.Pending, pod)
		}
	}
}
