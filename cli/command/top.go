// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringcap/ringcap/cli/fleet"
	"github.com/ringcap/ringcap/cli/rate"
)

// clearScreen clears the screen and moves the cursor to its upper left corner.
const clearScreen = "\x1b[H\x1b[2J"

func (a *app) top() *cobra.Command {
	var interval time.Duration
	var count int
	cmd := &cobra.Command{
		Use:   "top",
		Short: "live rates and loss of all rings on all nodes, the worst first",
		Long: `Shows for each ring and node what it sees, filters, delivers and loses per second, sorted by loss. Rates are over the
time between two answers of a node's agent, which is asked through the API server (get on pods/proxy). If it does not
answer, they are over the last two reports in its NodeCapture, which are up to five minutes apart.

On a terminal the screen is refreshed; else one table follows the other, or one JSON array the other with -o json.`,
		Example: `  ringcap top
  ringcap top --count 2 --interval 10s
  ringcap top -o json --count 2 | jq -s '.[-1] | map(select(.dropped > 0))'`,
		Args: noArgs,
	}
	o := outputFlag(cmd)
	cmd.Flags().DurationVar(&interval, "interval", 5*time.Second, "time between two refreshes, at least 1s")
	cmd.Flags().IntVar(&count, "count", 0, "end after this many tables; 0 for no end")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if interval < time.Second {
			return usagef("--interval: %s is less than 1s", interval)
		}
		c, err := a.connect()
		if err != nil {
			return err
		}
		var meter rate.Meter
		for i := 1; ; i++ {
			s, err := fleet.Read(cmd.Context(), c, a.now())
			if cmd.Context().Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			a.ask(cmd.Context(), c, &s)
			meter.Add(s)
			if err := a.table(*o, meter.Rows()); err != nil || i == count {
				return err
			}
			select {
			case <-cmd.Context().Done():
				return nil
			case <-time.After(interval):
			}
		}
	}
	return cmd
}

// table writes in one piece: the screen must not flicker.
func (a *app) table(o output, rows []rate.Row) error {
	var text bytes.Buffer
	if isTerminal(a.Out) && o == "text" {
		text.WriteString(clearScreen)
	}
	if o == "text" {
		fmt.Fprintf(&text, "%s\n", a.now().Format(time.RFC3339))
	}
	if err := o.write(&text, rows, func(w io.Writer) error { return rate.Text(w, rows) }); err != nil {
		return err
	}
	_, err := a.Out.Write(text.Bytes())
	return err
}

// isTerminal reports whether the output is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
