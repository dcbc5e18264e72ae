// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"slices"
)

var signs = map[Verdict]string{Captured: "✓", NotCaptured: "✗", Depends: "?"}

// Text prints an answer, and where it holds, for people.
func Text(w io.Writer, ring string, places []Step, a Answer) error {
	if _, err := fmt.Fprintf(w, "CaptureRing %s: %s\n", ring, a.Verdict); err != nil {
		return err
	}
	return steps(w, slices.Concat(places, a.Steps, a.Queues))
}

func steps(w io.Writer, all []Step) error {
	for _, s := range all {
		if _, err := fmt.Fprintf(w, "  %s %-10s  %s\n", signs[s.Verdict], s.Check, s.Why); err != nil {
			return err
		}
	}
	return nil
}

// SummaryText prints what becomes of a file's packets.
func SummaryText(w io.Writer, ring string, places []Step, s Summary) error {
	if _, err := fmt.Fprintf(w, "CaptureRing %s: of %d packets %d captured, %d not, %d depend\n", ring, s.Packets, s.Captured, s.NotCaptured, s.Depends); err != nil {
		return err
	}
	if err := steps(w, places); err != nil {
		return err
	}
	for _, c := range s.Counts {
		if _, err := fmt.Fprintf(w, "  %s %8d packets, the first is number %d: %s\n", signs[c.Verdict], c.Packets, c.First, c.Why); err != nil {
			return err
		}
	}
	if s.Cut > 0 {
		_, err := fmt.Fprintf(w, "  %d packets are cut in the file: what is missing was taken for zeroes\n", s.Cut)
		return err
	}
	return nil
}
