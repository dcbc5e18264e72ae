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
  ✗  does not work as asked; the line below gives the reason
  !  works, but packets are or were lost, or a queue has no consumer
  ✓  fine
Counters are packets since the ring was created on the node. They come from the agents, through the API server (get on
pods/proxy). If an agent does not answer they are those of the NodeCapture, up to five minutes old, and the line shows it.

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

// ask updates the counters of a snapshot from the agents, and tells the user once if the right to it is missing.
func (a *app) ask(ctx context.Context, c *connection, s *fleet.Snapshot, rings ...string) {
	s.Ask(ctx, c.agents, rings...)
	if s.Denied != "" && !a.deniedLogged {
		a.deniedLogged = true
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

// completeRings completes the names of rings.
func (a *app) completeRings(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	_, s, err := a.snapshot(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return ringNames(s), cobra.ShellCompDirectiveNoFileComp
}
