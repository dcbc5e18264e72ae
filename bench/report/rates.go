// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Rate is the greatest rate of a ladder at which nothing was lost.
type Rate struct {
	Case       string `json:"case"`
	Who        string `json:"who"`
	Queues     int    `json:"queues"`
	PacketSize int    `json:"packetSize"`
	// Load of the machine: "idle" or "busy".
	Load string `json:"load"`
	// PacketsPerSecond of emulated time, in which an instruction takes a nanosecond.
	PacketsPerSecond int `json:"packetsPerSecond"`
	// LowerBound is true if nothing faster could be sent.
	LowerBound bool `json:"lowerBound"`
}

// readRates reads the lines "rate CASE WHO QUEUES SIZE LOAD RATE BOUND" of rates.txt; without that file there are none.
func readRates(raw string) ([]Rate, error) {
	file, err := os.Open(filepath.Join(raw, "rates.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var rates []Rate
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var r Rate
		var bound string
		if !strings.HasPrefix(lines.Text(), "rate ") {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "rate %s %s %d %d %s %d %s", &r.Case, &r.Who, &r.Queues, &r.PacketSize, &r.Load,
			&r.PacketsPerSecond, &bound); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file.Name(), lines.Text(), err)
		}
		r.LowerBound = bound == "lower"
		rates = append(rates, r)
	}
	return rates, lines.Err()
}

// RateCell is a row's rates on an idle machine and on a busy one, in thousands of packets a second.
func (t *Tables) RateCell(key Key, size int) string {
	idle, busy := t.rate(key, size, "idle"), t.rate(key, size, "busy")
	if idle == "" && busy == "" {
		return "-"
	}
	return idle + ", " + busy
}

func (t *Tables) rate(key Key, size int, load string) string {
	for _, r := range t.rates {
		if r.Case != key.Case || r.Who != key.Who || r.Queues != key.Queues || r.PacketSize != size || r.Load != load {
			continue
		}
		bound := ""
		if r.LowerBound {
			bound = "≥ "
		}
		return fmt.Sprintf("%s%.0f", bound, float64(r.PacketsPerSecond)/1000)
	}
	return ""
}

func printRates(w io.Writer, rates []Rate) {
	if len(rates) > 0 {
		fmt.Fprintln(w, "\nLossless, packets a second:")
	}
	for _, r := range rates {
		fmt.Fprintf(w, "  %s, %s x%d, %d bytes, %s: %d", r.Case, r.Who, r.Queues, r.PacketSize, r.Load, r.PacketsPerSecond)
		if r.LowerBound {
			fmt.Fprint(w, " or more")
		}
		fmt.Fprintln(w)
	}
}
