// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"slices"
)

var signs = map[Verdict]string{Captured: "✓", NotCaptured: "✗", Depends: "?"}

// Text prints an answer, and where it applies, for users.
func Text(w io.Writer, ring string, placements []Step, a Answer) error {
	if _, err := fmt.Fprintf(w, "CaptureRing %s: %s\n", ring, a.Verdict); err != nil {
		return err
	}
	return steps(w, slices.Concat(placements, a.Steps, a.Queues))
}

func steps(w io.Writer, all []Step) error {
	for _, s := range all {
		if _, err := fmt.Fprintf(w, "  %s %-10s  %s\n", signs[s.Verdict], s.Check, s.Why); err != nil {
			return err
		}
	}
	return nil
}

// SummaryText prints the result for the packets of a file.
func SummaryText(w io.Writer, ring string, placements []Step, s Summary) error {
	if _, err := fmt.Fprintf(w, "CaptureRing %s: of %d packets %d captured, %d not, %d depend\n", ring, s.Packets, s.Captured, s.NotCaptured, s.Depends); err != nil {
		return err
	}
	if err := steps(w, placements); err != nil {
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
