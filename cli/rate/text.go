// SPDX-License-Identifier: Apache-2.0

package rate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ringcap/ringcap/cli/tree"
)

// Text prints rows as a table.
func Text(w io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RING\tNODE\tENGINE\tPKT/S\tMBIT/S\tFILTERED/S\tDELIVERED/S\tLOST/S\tLOST\tREAD\tUNREAD\tWHY")
	for _, r := range rows {
		read, unread := fmt.Sprintf("%d/%d", r.Attached, r.Queues), tree.Number(r.UnreadBytes)+" B"
		if !r.Known {
			fmt.Fprintf(table, "%s\t%s\t%s\t-\t-\t-\t-\t-\t-\t%s\t%s\t%s\n", r.Ring, r.Node, r.Engine, read, unread, r.why())
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.1f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Ring, r.Node, r.Engine, whole(r.Seen), r.Bits/1e6,
			whole(r.Filtered), whole(r.Delivered), whole(r.Dropped), share(r), read, unread, r.why())
	}
	return table.Flush()
}

func whole(n float64) string { return tree.Number(int64(n + 0.5)) }

// share of what was passed to queues that was lost.
func share(r Row) string {
	if r.Dropped == 0 {
		return "0%"
	}
	return fmt.Sprintf("%.2g%%", 100*r.Dropped/(r.Dropped+r.Shunted+r.Delivered))
}

func (r Row) why() string {
	var why []string
	if r.Silent {
		why = append(why, "node does not report")
	} else if !r.Known {
		why = append(why, "first count")
	}
	if r.Age > 0 && !r.Silent {
		why = append(why, fmt.Sprintf("counters %g s old", r.Age))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.ByReason)) {
		why = append(why, fmt.Sprintf("%s %s/s", reason, whole(r.ByReason[reason])))
	}
	if r.Shunted > 0 {
		why = append(why, fmt.Sprintf("shunted %s/s", whole(r.Shunted)))
	}
	if r.Truncated > 0 {
		why = append(why, fmt.Sprintf("truncated %s/s", whole(r.Truncated)))
	}
	return strings.Join(why, ", ")
}
