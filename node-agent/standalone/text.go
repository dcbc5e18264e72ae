// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// stateText returns what is captured, what is not, and why. It changes only with these, not with the counters.
func stateText(manifests Manifests, s v1.NodeCaptureStatus) string {
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RING\tENGINE\tINTERFACES\tREADY\tWHY")
	for _, ring := range s.Rings {
		why := ring.EngineReason
		if !ring.Ready {
			why = ring.Reason + ": " + ring.Message + from(manifests, kindRing, ring.Name)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", ring.Name, orDash(string(ring.Engine)), orDash(strings.Join(ring.Interfaces, ",")), yesNo(ring.Ready), why)
	}
	fmt.Fprintln(table, "\nQUEUES OF\tQUEUES\tMEMORY\tREADY\tCONSUME WITH")
	for _, cluster := range s.Clusters {
		how := consumeWith(cluster)
		if !cluster.Ready {
			how = cluster.Reason + ": " + cluster.Message + from(manifests, kindCluster, cluster.Name)
		}
		fmt.Fprintf(table, "%s\t%d\t%d KiB\t%s\t%s\n", cluster.Name, len(cluster.Queues), cluster.MemoryBytes>>10, yesNo(cluster.Ready), how)
	}
	table.Flush()
	for _, problem := range manifests.Problems {
		fmt.Fprintln(&out, "refused:", problem)
	}
	for _, ignored := range manifests.Ignored {
		fmt.Fprintln(&out, "ignored:", ignored)
	}
	return out.String()
}

// consumeWith returns a command that reads the queues. In line, programs that give no verdicts are refused.
func consumeWith(cluster v1.NodeClusterStatus) string {
	if len(cluster.Queues) > 0 && cluster.Queues[0].Inline != nil {
		return fmt.Sprintf("a program that gives verdicts: snort -Q --daq ringcap -i %s -z %d", cluster.Name, len(cluster.Queues))
	}
	return fmt.Sprintf("tcpdump -i ringcap:%s (with ringcap's libpcap)", cluster.Name)
}

// from returns the file of an object, for the user to look into.
func from(manifests Manifests, kind, name string) string {
	if file := manifests.File(kind, name); file != "" {
		return " (" + file + ")"
	}
	return ""
}

// accountText returns the account of every packet.
func accountText(s v1.NodeCaptureStatus) string {
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RING\tSEEN\tFILTERED\tSAMPLED OUT\tPASSED")
	for _, r := range s.Rings {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\n", r.Name, r.Seen, r.Filtered, r.SampledOut, r.Passed)
	}
	fmt.Fprintln(table, "\nQUEUE\tDELIVERED\tBYTES\tTRUNCATED\tSHUNTED\tDROPPED\tUNREAD BYTES\tATTACHED")
	for _, c := range s.Clusters {
		for _, q := range c.Queues {
			fmt.Fprintf(table, "%s@%d\t%d\t%d\t%s\t%d\t%s\t%d\t%s\n", c.Name, q.Queue, q.Delivered, q.DeliveredBytes, cut(q), q.Shunted, drops(q), q.UnreadBytes, yesNo(q.Attached))
		}
	}
	table.Flush()
	return out.String()
}

// cut reports how many packets were truncated.
func cut(q v1.QueueStatus) string {
	if q.Truncated == 0 {
		return "0"
	}
	return fmt.Sprintf("%d by %d bytes", q.Truncated, q.TruncatedBytes)
}

func drops(q v1.QueueStatus) string {
	var parts []string
	for _, d := range q.Dropped {
		if d.Packets > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", d.Packets, d.Reason))
		}
	}
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, ", ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
