// SPDX-License-Identifier: Apache-2.0

// The operator turns CaptureRings and Clusters into NodeCaptures, and writes their status.
//
//	operator run       reconciles until it is stopped
//	operator cleanup   deletes all CaptureRings, Clusters and PodCaptures, or suspends them, and waits until no node has them
//	operator leave     waits until a DaemonSet has cleaned the nodes, and deletes what operator run created for itself
//	operator ready     waits until a CaptureRing is ready
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/cleanup"
	"github.com/ringcap/ringcap/operator/controllers/podcapture"
	"github.com/ringcap/ringcap/operator/controllers/rollout"
	"github.com/ringcap/ringcap/operator/controllers/status"
	"github.com/ringcap/ringcap/operator/controllers/upgrade"
	"github.com/ringcap/ringcap/operator/filtercheck"
	"github.com/ringcap/ringcap/operator/metrics"
	"github.com/ringcap/ringcap/operator/networks"
	"github.com/ringcap/ringcap/operator/plan"
	"github.com/ringcap/ringcap/operator/snapshot"
	"github.com/ringcap/ringcap/operator/suspend"
	"github.com/ringcap/ringcap/operator/wait"
)

// version is set by the build.
var version = "unknown"

// leaseName is known to the chart's Role.
const leaseName = "ringcap-operator"

const usage = `usage: operator COMMAND [flags]
  run      reconciles until it is stopped
  cleanup  deletes all CaptureRings, Clusters and PodCaptures, or suspends them, and waits until no node has them
  leave    waits until a DaemonSet has cleaned the nodes, and deletes what run created for itself
  ready    waits until a CaptureRing is ready
-h after each lists its flags.
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	commands := map[string]func(context.Context, []string) error{"run": run, "cleanup": clean, "leave": leave, "ready": ready}
	command, known := commands[os.Args[1]]
	switch {
	case known:
	case slices.Contains([]string{"-h", "--help", "help"}, os.Args[1]):
		fmt.Print(usage)
		return
	default:
		fmt.Fprintf(os.Stderr, "operator: no command %q\n%s", os.Args[1], usage)
		os.Exit(2)
	}
	if err := command(ctrl.SetupSignalHandler(), os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "operator %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// runFlags are the flags of run.
type runFlags struct {
	namespace, deployment  string
	metrics, health, rcbpf string
	logLevel               slog.Level
	upgrade, agents        string
	maxUnavailable         int
	plugin                 networks.DevicePlugin
	fleetLimit             resource.QuantityValue
	podCaptures            podcapture.Limits
}

func parseRun(args []string) runFlags {
	var f runFlags
	flags := flag.NewFlagSet("operator run", flag.ExitOnError)
	flags.StringVar(&f.namespace, "namespace", "", "namespace of the Leases for leader election and of the agents; required")
	flags.StringVar(&f.deployment, "deployment", "", "the Deployment that runs this, in the same namespace, which operator cleanup --keep marks; empty: none")
	flags.StringVar(&f.metrics, "metrics-address", ":8080", "address of /metrics; 0 for none")
	flags.StringVar(&f.health, "health-address", ":8081", "address of /healthz and /readyz; 0 for none")
	flags.StringVar(&f.rcbpf, "rcbpf", "", "the filter compiler's path; default: rcbpf beside this program, else in PATH")
	flags.TextVar(&f.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
	flags.StringVar(&f.upgrade, "module-upgrade", string(upgrade.Never), "when loaded kernel modules are replaced by new ones: Never, WhenFree, Evict")
	flags.StringVar(&f.agents, "agents", "app.kubernetes.io/component=agent", "labels of the agents' pods, in the same namespace")
	flags.IntVar(&f.maxUnavailable, "module-upgrade-max-unavailable", 1, "maximum number of nodes without a ready agent during an upgrade of modules")
	flags.StringVar(&f.plugin.ConfigMap.Namespace, "pools-namespace", "kube-system", "namespace of sriov-network-device-plugin")
	flags.StringVar(&f.plugin.ConfigMap.Name, "pools-configmap", "", "ConfigMap of its configuration, which the operator writes for rings that define their pools; empty: never")
	flags.Func("pools-daemonset", "DaemonSet of its pods, which are replaced when the configuration changes; may be repeated", func(name string) error {
		f.plugin.DaemonSets = append(f.plugin.DaemonSets, name)
		return nil
	})
	f.fleetLimit.Quantity = *resource.NewQuantity(plan.DefaultFleetBytes, resource.BinarySI)
	flags.Var(&f.fleetLimit, "fleet-limit", "maximum size of the rings and Clusters in all NodeCaptures together, bytes, such as 256Mi; 0 for no limit")
	flags.IntVar(&f.podCaptures.PerNamespace, "pod-captures-per-namespace", 4, "maximum number of PodCaptures in a namespace; 0 for none")
	f.podCaptures.Memory = 64 << 20
	flags.Func("pod-capture-memory", "maximum memory of the queues of a PodCapture on each node; default 64Mi", func(text string) error {
		memory, err := resource.ParseQuantity(text)
		f.podCaptures.Memory = memory.Value()
		return err
	})
	_ = flags.Parse(args) // exits
	return f
}

func run(ctx context.Context, args []string) error {
	f := parseRun(args)
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: f.logLevel})))
	if f.namespace == "" {
		return errors.New("give --namespace, which is the operator's and the agents'")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	deployment, caches := client.ObjectKey{Namespace: f.namespace, Name: f.deployment}, snapshot.CacheOptions(f.namespace)
	caches.ByObject[&v1alpha1.PodCapture{}] = cache.ByObject{Transform: podcapture.Trim}
	if f.deployment != "" {
		caches.ByObject[suspend.Metadata()] = suspend.CacheOption(deployment)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         caches,
		Metrics:                       server.Options{BindAddress: f.metrics},
		HealthProbeBindAddress:        f.health,
		LeaderElection:                true,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       f.namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	var mark *suspend.Mark
	if f.deployment != "" {
		mark = suspend.New(mgr.GetClient(), deployment)
		if err := suspend.New(mgr.GetAPIReader(), deployment).There(ctx); err != nil {
			return err
		}
	}
	collector := metrics.NewCollector(version)
	if err := ctrlmetrics.Registry.Register(collector); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	planner := &snapshot.Planner{
		Reader: mgr.GetClient(), CheckFilter: filtercheck.New(filtercheck.Compiler(f.rcbpf)).Check, FleetBytes: max(f.fleetLimit.Value(), 0),
		Now: time.Now, Mark: mark,
	}
	if err := addControllers(mgr, planner, collector, f); err != nil {
		return err
	}
	if err := addUpgrader(mgr, f); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// addUpgrader adds the upgrades of modules, if they are wanted.
func addUpgrader(mgr ctrl.Manager, f runFlags) error {
	policy := upgrade.Policy(f.upgrade)
	switch policy {
	case upgrade.Never:
		return nil
	case upgrade.WhenFree, upgrade.Evict:
	default:
		return fmt.Errorf("--module-upgrade %q: must be Never, WhenFree or Evict", f.upgrade)
	}
	if f.maxUnavailable < 1 || f.namespace == "" {
		return errors.New("upgrades of modules need --namespace, and --module-upgrade-max-unavailable of 1 or more")
	}
	agents, err := labels.Parse(f.agents)
	if err != nil {
		return fmt.Errorf("--agents: %w", err)
	}
	return mgr.Add(&upgrade.Upgrader{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Namespace: f.namespace, Agents: agents,
		Policy: policy, MaxUnavailable: f.maxUnavailable, Now: time.Now,
	})
}

func addControllers(mgr ctrl.Manager, planner *snapshot.Planner, collector *metrics.Collector, f runFlags) error {
	writer := networks.NewWriter(mgr.GetClient(), f.plugin)
	nodes := &rollout.Reconciler{Client: mgr.GetClient(), Planner: planner, Networks: writer}
	statuses := &status.Reconciler{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("ringcap-operator"), Planner: planner,
		Publish: collector.Set, Networks: writer,
	}
	pods := &podcapture.Reconciler{Client: mgr.GetClient(), Limits: f.podCaptures}
	if err := errors.Join(nodes.SetupWithManager(mgr), statuses.SetupWithManager(mgr), pods.SetupWithManager(mgr)); err != nil {
		return fmt.Errorf("add the controllers: %w", err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("synced", synced(mgr.GetCache()))); err != nil {
		return fmt.Errorf("add the health checks: %w", err)
	}
	return nil
}

// synced fails while what the API server has is not known.
func synced(known cache.Cache) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if !known.WaitForCacheSync(ctx) {
			return errors.New("the API server's objects have not been read yet")
		}
		return nil
	}
}

func clean(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("operator cleanup", flag.ExitOnError)
	timeout := flags.Duration("timeout", 2*time.Minute, "how long to wait for the nodes")
	keep := flags.Bool("keep", false, "keep the objects; needs --namespace and --deployment")
	var operator client.ObjectKey
	flags.StringVar(&operator.Namespace, "namespace", "", "namespace of operator run")
	flags.StringVar(&operator.Name, "deployment", "", "the Deployment of operator run")
	_ = flags.Parse(args) // exits
	if *keep && (operator.Namespace == "" || operator.Name == "") {
		return errors.New("give --namespace and --deployment with --keep")
	}
	return once(ctx, *timeout, func(ctx context.Context, c client.Client) error {
		if *keep {
			return cleanup.Keep(ctx, c, operator, os.Stdout)
		}
		return cleanup.Run(ctx, c, os.Stdout)
	})
}

func leave(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("operator leave", flag.ExitOnError)
	timeout := flags.Duration("timeout", 2*time.Minute, "how long to wait for the nodes")
	var nodes client.ObjectKey
	flags.StringVar(&nodes.Namespace, "namespace", "", "namespace of the DaemonSet and of operator run; required")
	flags.StringVar(&nodes.Name, "daemonset", "", "name of the DaemonSet that has ready pods where nodes are clean; required")
	_ = flags.Parse(args) // exits
	if nodes.Namespace == "" || nodes.Name == "" {
		return errors.New("give --namespace and --daemonset")
	}
	return once(ctx, *timeout, func(ctx context.Context, c client.Client) error {
		return cleanup.Leave(ctx, c, nodes, leaseName, os.Stdout)
	})
}

func ready(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("operator ready", flag.ExitOnError)
	timeout := flags.Duration("timeout", 2*time.Minute, "how long to wait")
	ring := flags.String("ring", "", "the CaptureRing's name; required")
	_ = flags.Parse(args) // exits
	if *ring == "" {
		return errors.New("give --ring")
	}
	return once(ctx, *timeout, func(ctx context.Context, c client.Client) error { return wait.Ring(ctx, c, *ring, os.Stdout) })
}

// once does something that ends with a client of the API server.
func once(ctx context.Context, timeout time.Duration, do func(context.Context, client.Client) error) error {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return do(ctx, c)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("set up the API's kinds: %w", err)
	}
	return scheme, nil
}
