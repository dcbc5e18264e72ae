// SPDX-License-Identifier: Apache-2.0

// Package counters reads NodeCaptures with the agents' present counters. Those in the API are up to five minutes old.
package counters

import (
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/command"
	"github.com/ringcap/ringcap/cli/fleet"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Read tries until all agents answer or ctx ends, because one may be starting. The error names the nodes that did not answer.
func Read(ctx context.Context, config *rest.Config) (list v1alpha1.NodeCaptureList, err error) {
	c, err := client.New(config, client.Options{Scheme: command.Scheme()})
	if err != nil {
		return list, err
	}
	ask, err := fleet.AskThrough(config)
	if err != nil {
		return list, err
	}
	for {
		s, err := fleet.Read(ctx, c, time.Now())
		if err != nil {
			return list, err
		}
		s.Ask(ctx, ask)
		silent := notHeard(s)
		if len(silent) == 0 {
			list.APIVersion, list.Kind, list.Items = v1alpha1.GroupVersion.String(), "NodeCaptureList", s.Nodes
			return list, nil
		}
		select {
		case <-ctx.Done():
			return list, errors.New(strings.Join(silent, "; "))
		case <-time.After(time.Second):
		}
	}
}

// notHeard are the nodes whose counters are not the present ones.
func notHeard(s fleet.Snapshot) (nodes []string) {
	for i := range s.Nodes {
		node := &s.Nodes[i]
		if counted := s.CountedOn(node); len(node.Status.Rings) > 0 && !counted.Live() {
			nodes = append(nodes, node.Name+": "+counted.Why)
		}
	}
	return nodes
}
