// SPDX-License-Identifier: Apache-2.0

// Package command is ringcap's command line: one file for each command, which parses flags, calls the other packages and prints.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/fleet"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Exit codes.
const (
	ExitFine = 0
	// ExitFailed means that the command failed.
	ExitFailed = 1
	// ExitUsage means that the command line is wrong.
	ExitUsage = 2
	// ExitBad means that the command succeeded and found a problem: see each command's help.
	ExitBad = 3
)

// errBad ends a command with ExitBad; the problem has been printed.
var errBad = errors.New("bad")

// usageError is an error in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Streams are the input and output of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// app is shared by all commands.
type app struct {
	Streams
	version string
	now     func() time.Time

	kubeconfig, context, namespace, as string
	timeout                            string
	// deniedLogged means that the user has been told about the missing right to ask agents.
	deniedLogged bool
	// connect is cluster, except in tests.
	connect func() (*connection, error)
}

// connection is a connection to a cluster.
type connection struct {
	client.Client
	config *rest.Config
	// namespace that the user works in.
	namespace string
	// agents asks the agents, through the API server.
	agents fleet.Asker
}

// Run runs a command line and returns its exit code. Interrupts end ctx.
func Run(ctx context.Context, args []string, version string, streams Streams) int {
	a := &app{Streams: streams, version: version, now: time.Now}
	a.connect = a.cluster
	return a.run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root(nameOf(args[0]))
	root.SetArgs(args[1:])
	cmd, err := root.ExecuteContextC(ctx)
	var usage usageError
	switch {
	case err == nil:
		return ExitFine
	case errors.Is(err, errBad):
		return ExitBad
	case errors.As(err, &usage):
		fmt.Fprintf(a.Err, "ringcap: %v\nSee '%s --help'.\n", err, cmd.CommandPath())
		return ExitUsage
	default:
		fmt.Fprintf(a.Err, "ringcap: %v\n", err)
		return ExitFailed
	}
}

// nameOf returns the command that the user typed: kubectl runs kubectl-ringcap for `kubectl ringcap`.
func nameOf(program string) string {
	if strings.HasPrefix(filepath.Base(program), "kubectl-") {
		return "kubectl ringcap"
	}
	return "ringcap"
}

func (a *app) root(name string) *cobra.Command {
	root := &cobra.Command{
		Use:   "ringcap",
		Short: "see, understand and take packet captures of a Kubernetes cluster",
		Long: `ringcap shows what CaptureRings capture and lose, and why, and streams their packets to your machine.

Exit codes, of all commands:
  0  fine
  1  the command failed; the error names what failed and what to do
  2  the command line is wrong
  3  the command succeeded and found a problem: something is not ready (status), an error was found (doctor),
     a packet would not be captured (explain), packets were lost or a node did not answer (capture)`,
		Example: `  ringcap doctor
  ringcap status mirror
  ringcap capture mirror -f 'tcp port 443' -w https.pcapng --duration 1m`,
		Version:       a.version,
		SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Args:        noArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", "path of the kubeconfig file (default: $KUBECONFIG, else ~/.kube/config)")
	flags.StringVar(&a.context, "context", "", "context of the kubeconfig file")
	flags.StringVarP(&a.namespace, "namespace", "n", "", "namespace, for what has one (default: the context's)")
	flags.StringVar(&a.as, "as", "", "user to act as")
	flags.StringVar(&a.timeout, "request-timeout", "15s", "longest time that one request may take; 0 = no limit")
	root.AddCommand(a.status(), a.top(), a.doctor(), a.explain(), a.capture())
	return root
}

// noArgs is cobra.NoArgs with ringcap's exit code.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unknown argument %q", args[0])
	}
	return nil
}

// cluster connects as kubectl would.
func (a *app) cluster() (*connection, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: a.context, Timeout: a.timeout}
	overrides.Context.Namespace = a.namespace
	overrides.AuthInfo.Impersonate = a.as
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w (set KUBECONFIG or --kubeconfig)", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("find the namespace to work in: %w", err)
	}
	config.UserAgent = "ringcap/" + a.version
	c, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	agents, err := fleet.AskThrough(config)
	if err != nil {
		return nil, err
	}
	return &connection{Client: c, config: config, namespace: namespace, agents: agents}, nil
}

// Scheme contains the kinds of Kubernetes and ringcap.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(s); err != nil {
			fmt.Fprintln(os.Stderr, "ringcap: kinds that contradict each other:", err)
			os.Exit(ExitFailed)
		}
	}
	return s
}
