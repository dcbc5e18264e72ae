// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ringcap/ringcap/cli/fleet"
	"github.com/ringcap/ringcap/cli/tree"
)

func (a *app) status() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [RING...]",
		Short: "the tree ring -> node -> queue -> consumer, what is wrong first",
		Long: `Shows every CaptureRing, its nodes, their queues and who reads them, the worst first:
  ✗  does not do what was asked; the line below says why
  !  does, but packets are or were lost, or nobody reads a queue
  ✓  fine
Counters are packets since the ring was made on the node. They are asked of the agents, through the API server (get on
pods/proxy); where an agent does not answer they are those of the NodeCapture, up to five minutes old, and the line says so.

Exit code 3: something is ✗.`,
		Example: `  ringcap status
  ringcap status mirror
  ringcap status -o json | jq '.rings[].nodes[] | select(.health != "Healthy")'`,
		ValidArgsFunction: a.completeRings,
	}
	o := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, s, err := a.snapshot(cmd.Context())
		if err != nil {
			return err
		}
		for _, name := range args {
			if s.Ring(name) == nil {
				return noRing(s, name)
			}
		}
		a.ask(cmd.Context(), c, &s, args...)
		t := tree.Of(s, args...)
		if err := o.write(a.Out, t, func(w io.Writer) error { return tree.Text(w, t) }); err != nil {
			return err
		}
		if t.Health == tree.Failed {
			return errBad
		}
		return nil
	}
	return cmd
}

// snapshot connects and reads.
func (a *app) snapshot(ctx context.Context) (*connection, fleet.Snapshot, error) {
	c, err := a.connect()
	if err != nil {
		return nil, fleet.Snapshot{}, err
	}
	s, err := fleet.Read(ctx, c, a.now())
	return c, s, err
}

// ask brings the counters of a snapshot up to date, and tells the person once of a right that is missing.
func (a *app) ask(ctx context.Context, c *connection, s *fleet.Snapshot, rings ...string) {
	s.Ask(ctx, c.agents, rings...)
	if s.Denied != "" && !a.toldDenied {
		a.toldDenied = true
		a.log("%s", s.Denied)
	}
}

func noRing(s fleet.Snapshot, name string) error {
	names := ringNames(s)
	if len(names) == 0 {
		return fmt.Errorf("there is no CaptureRing %s, nor any other", name)
	}
	return fmt.Errorf("there is no CaptureRing %s; there are: %v", name, names)
}

func ringNames(s fleet.Snapshot) []string {
	var names []string
	for _, ring := range s.Rings {
		names = append(names, ring.Name)
	}
	return names
}

// completeRings completes names of rings.
func (a *app) completeRings(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	_, s, err := a.snapshot(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return ringNames(s), cobra.ShellCompDirectiveNoFileComp
}
