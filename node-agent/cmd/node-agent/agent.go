// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ringcap/ringcap/node-agent/agent"
	"github.com/ringcap/ringcap/node-agent/containers"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/engine/ebpf"
	"github.com/ringcap/ringcap/node-agent/metrics"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/pods"
	"github.com/ringcap/ringcap/node-agent/standalone"
)

func runAgent(ctx context.Context, args []string, out, errOut io.Writer) error {
	hostname, err := os.Hostname()
	if err != nil {
		return err
	}
	f, err := parseAgentFlags(args, os.Getenv, hostname, errOut)
	if err != nil {
		return err
	}
	setLog(f.logLevel, errOut)
	identity, err := node.ReadIdentity()
	if err != nil {
		return err
	}
	if f.standalone != "" {
		return runStandalone(ctx, f, identity, out)
	}
	return runInCluster(ctx, f, identity)
}

func runInCluster(ctx context.Context, f agentFlags, identity node.Identity) error {
	config, err := apiServer(f.kubeconfig)
	if err != nil {
		return err
	}
	access, err := agent.PodAccess(config, f.kubeletDir, f.sys)
	if err != nil {
		return err
	}
	p := newParts(ctx, f, identity, consumers{authorizer: ebpf.AuthorizerFunc(access.Allow)})
	p.reconciler.Pools = (&pods.Pools{
		List: agent.PodResources(f.kubeletDir).Pools, Records: node.Records[pods.Function]{Path: f.poolFile(), BootID: identity.BootID},
	}).Refresh
	p.reconciler.Accepted = datapath.Accepted{Node: f.nodeName}
	p.reconciler.Accepted.Records.Path = filepath.Join(f.pluginDir(), acceptedName)
	server := agent.APIServer(config)
	p.reconciler.Traffic = func() (map[string]string, error) { return node.Traffic(server()) }
	reach, err := agent.Reach(config)
	if err != nil {
		return err
	}
	p.reconciler.Trials = datapath.NewTrials(filepath.Join(f.pluginDir(), trialsName), identity.BootID, f.cutOffAfter, reach, p.changed)
	a := agent.Agent{
		Node: f.nodeName, Config: config, KubeletDir: f.kubeletDir, CDIDir: f.cdiDir, MetricsAddress: f.metricsAddress,
		Identity: identity, Reconciler: p.reconciler, Collector: metrics.NewCollector(version, identity.KernelRelease),
		Module: p.module.status, Changed: p.changed, Activity: p.activity, Access: access, Names: p.names,
		Library: containers.Library{From: f.libpcap, To: f.pluginDir()},
		Pod:     types.NamespacedName{Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("POD_NAME")},
	}
	return a.Run(ctx)
}

// apiServer returns the configuration of the pod, or of a kubeconfig.
func apiServer(kubeconfig string) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server (outside a cluster, give --kubeconfig or --standalone): %w", err)
	}
	config.UserAgent = "ringcap-node-agent/" + version
	return config, nil
}

func runStandalone(ctx context.Context, f agentFlags, identity node.Identity, out io.Writer) error {
	users, err := f.users()
	if err != nil {
		return err
	}
	p := newParts(ctx, f, identity, consumers{users: users})
	p.reconciler.Accepted.Records.Path, p.reconciler.Accepted.Records.BootID = f.acceptedFile(), identity.BootID
	collector := metrics.NewCollector(version, identity.KernelRelease)
	var state metrics.Health
	state.Beat()
	if f.metricsAddress != "" {
		if err := metrics.Serve(ctx, f.metricsAddress, collector, state.Healthy, state.Ready, nil); err != nil {
			return err
		}
	}
	runner := standalone.Runner{
		Options: standalone.Options{
			Folder: f.standalone, Hostname: f.hostname, Keep: f.keep, StatusFile: f.statusJSON, Refresh: time.Second, Out: out,
		},
		Reconciler: p.reconciler, Identity: identity, Module: p.module.status, Changed: p.changed, Activity: p.activity,
		Publish: func(report datapath.Report) {
			state.Beat()
			state.Set(errors.Join(report.Err, report.ObserveErr))
			collector.Set(report, p.module.status())
		},
		Reconciled: collector.Reconciled,
		Remove:     func(ctx context.Context) error { return removeAll(ctx, f.nodePaths, identity) },
	}
	return runner.Run(ctx)
}
