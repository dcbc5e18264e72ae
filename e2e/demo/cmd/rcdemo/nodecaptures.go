// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/command"
	"github.com/ringcap/ringcap/cli/fleet"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// nodeCaptures prints all NodeCaptures as kubectl does, with the agents' present counters. It tries until all agents answer,
// because one may be starting.
func nodeCaptures(args []string) error {
	flags := flag.NewFlagSet("nodecaptures", flag.ExitOnError)
	patience := flags.Duration("patience", time.Minute, "how long to wait for agents that do not answer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return errors.New("takes no arguments; the cluster is KUBECONFIG's")
	}
	ctx, cancel := context.WithTimeout(context.Background(), *patience)
	defer cancel()
	list, err := askAll(ctx)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}

func askAll(ctx context.Context) (list v1alpha1.NodeCaptureList, err error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return list, fmt.Errorf("find the cluster: %w", err)
	}
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

// notHeard are the nodes with counters that are not the present ones.
func notHeard(s fleet.Snapshot) (nodes []string) {
	for i := range s.Nodes {
		node := &s.Nodes[i]
		if counted := s.CountedOn(node); len(node.Status.Rings) > 0 && !counted.Live() {
			nodes = append(nodes, node.Name+": "+counted.Why)
		}
	}
	return nodes
}
