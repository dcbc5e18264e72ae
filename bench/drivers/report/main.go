// SPDX-License-Identifier: Apache-2.0

// Command report is that of bench/drivers: the receive side of network cards, with stock and with capture-aware drivers.
package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/bench/report"
)

var benchmark = report.Benchmark{
	Title: "receive side of emulated network cards, net of sending alone",
	// Each card has the other for a sender.
	Baseline: func(what, who string) (string, bool) {
		card, _, _ := strings.Cut(what, "-")
		return card, who == "sender"
	},
	Judge:    judge,
	Markdown: markdown,
}

func main() { report.Main(benchmark) }

func key(what, who string, queues int) report.Key {
	return report.Key{Case: what, Who: who, Queues: queues}
}

var (
	stack    = key("igb-stock", "no-reader", 1)
	tpacket  = key("igb-stock", "tpacket-v3", 1)
	xdp      = key("igb-stock", "af-xdp-copy", 1)
	idle     = key("igb-aware", "no-reader", 1)
	mode1    = key("igb-aware", "mode-1", 1)
	mode2    = key("igb-aware", "mode-2", 1)
	mode2SKB = key("igb-aware-skb", "mode-2", 1)
	ebpf     = key("igb-stock", "ebpf-mode-2", 1)

	stackMirrored   = key("igb-stock-mirrored", "no-reader", 1)
	tpacketMirrored = key("igb-stock-mirrored", "tpacket-v3", 1)
	mode1Mirrored   = key("igb-aware-mirrored", "mode-1", 1)
	mode2Mirrored   = key("igb-aware-mirrored", "mode-2", 1)
)

func judge(rows *report.Rows) {
	rows.LimitRatio("igb, mode 2 before the skb / TPACKET_V3", 0.20, mode2, tpacket)
	rows.LimitRatio("igb, mode 2 before the skb / TPACKET_V3, mirrored traffic", 0.20, mode2Mirrored, tpacketMirrored)
	rows.LimitRatio("igb, mode 2 before the skb / AF_XDP, copy mode", 0.65, mode2, xdp)
	rows.LimitRatio("igb, eBPF before the skb (XDP, mode 2) / the module's mode 2 there", 1.5, ebpf, mode2)
	rows.LimitRatio("igb, mode 2 on the skb / TPACKET_V3", 0.40, mode2SKB, tpacket)
	rows.LimitRatio("igb, mode 1 / the stack alone", 1.12, mode1, stack)
	rows.LimitRatio("igb, mode 1 / the stack alone, mirrored traffic", 1.12, mode1Mirrored, stackMirrored)
	for _, queues := range []int{2, 4} {
		rows.LimitRatio(fmt.Sprintf("igb, mode 2, %d queues / 1", queues), 1.05, key("igb-aware", "mode-2", queues), mode2)
		rows.LimitRatio(fmt.Sprintf("igb, mode 2, %d queues / 1, a ring's queue for each", queues), 1.05,
			key("igb-aware", "mode-2-per-queue", queues), mode2)
	}
	rows.LimitRatio("igb, aware driver without a ring / stock driver", 1.01, idle, stack)
}

func markdown(result report.Result) string {
	t := report.NewTables(result)
	sizes := []column{{"60 bytes", "", 1, report.Smallest}, {"512 bytes", "", 1, 512}, {"1500 bytes", "", 1, 1500}}
	queues := []column{{"1 queue", "", 1, report.Smallest}, {"2 queues", "", 2, report.Smallest}, {"4 queues", "", 4, report.Smallest}}
	add(t, t.Cell, "igb", "igb", bySize, sizes)
	add(t, t.Cell, "e1000e", "e1000e", bySize, sizes)
	add(t, t.Cell, "igb, 60 bytes", "igb", byQueues, queues)
	add(t, t.Cell, "igb, 60 bytes", "igb", byTraffic, []column{
		{"for this host", "", 1, report.Smallest}, {"mirrored", "-mirrored", 1, report.Smallest},
		{"an interrupt for each packet", "-idle", 1, report.Smallest},
	})
	add(t, t.RateCell, "lossless, igb", "igb", rates, sizes)
	add(t, t.RateCell, "lossless, igb, 60 bytes", "igb", rates, queues)
	add(t, t.RateCell, "lossless, e1000e", "e1000e", rates, sizes)
	t.Goals()
	t.Dominators(tpacket, xdp, ebpf, mode1, mode2, mode2SKB)
	return t.String()
}

// line of a table: a reader, and the driver that the card has.
type line struct{ label, driver, who string }

// column of a table: the traffic, the card's queues and the packets.
type column struct {
	head, traffic string
	queues, size  int
}

// add a table, without lines of which nothing was measured.
func add(t *report.Tables, cell func(report.Key, int) string, title, card string, lines []line, columns []column) {
	head := []string{title}
	for _, c := range columns {
		head = append(head, c.head)
	}
	var out []report.Line
	for _, l := range lines {
		o := report.Line{Label: l.label}
		for _, c := range columns {
			o.Cells = append(o.Cells, cell(key(card+"-"+l.driver+c.traffic, l.who, c.queues), c.size))
		}
		if slices.ContainsFunc(o.Cells, func(text string) bool { return text != "-" }) {
			out = append(out, o)
		}
	}
	if len(out) > 0 {
		t.Table(head, out)
	}
}

var (
	bySize = []line{
		{"stock driver, no reader", "stock", "no-reader"},
		{"stock driver, TPACKET_V3", "stock", "tpacket-v3"},
		{"stock driver, AF_XDP, copy mode", "stock", "af-xdp-copy"},
		{"stock driver, eBPF engine, mode 2 (XDP)", "stock", "ebpf-mode-2"},
		{"aware driver, no ring", "aware", "no-reader"},
		{"aware driver, mode 0", "aware", "mode-0"},
		{"aware driver, mode 1", "aware", "mode-1"},
		{"aware driver, mode 2 on the skb", "aware-skb", "mode-2"},
		{"aware driver, mode 2 before the skb", "aware", "mode-2"},
	}
	byQueues = []line{
		{"stock driver, no reader", "stock", "no-reader"},
		{"stock driver, no reader, threaded polling", "stock-threaded", "no-reader"},
		{"stock driver, TPACKET_V3", "stock", "tpacket-v3"},
		{"stock driver, AF_XDP, copy mode, a socket for each", "stock", "af-xdp-copy"},
		{"aware driver, mode 0", "aware", "mode-0"},
		{"aware driver, mode 1", "aware", "mode-1"},
		{"aware driver, mode 2", "aware", "mode-2"},
		{"aware driver, mode 2, a ring's queue for each of the card's", "aware", "mode-2-per-queue"},
		{"the same, threaded polling", "aware-threaded", "mode-2-per-queue"},
	}
	byTraffic = []line{
		{"stock driver, no reader", "stock", "no-reader"},
		{"stock driver, TPACKET_V3", "stock", "tpacket-v3"},
		{"stock driver, AF_XDP, copy mode", "stock", "af-xdp-copy"},
		{"aware driver, mode 1", "aware", "mode-1"},
		{"aware driver, mode 2", "aware", "mode-2"},
	}
	rates = []line{
		{"stock driver, TPACKET_V3", "stock", "tpacket-v3"},
		{"stock driver, AF_XDP, copy mode", "stock", "af-xdp-copy"},
		{"aware driver, mode 0", "aware", "mode-0"},
		{"aware driver, mode 1", "aware", "mode-1"},
		{"aware driver, mode 2", "aware", "mode-2"},
		{"aware driver, mode 2, a ring's queue for each of the card's", "aware", "mode-2-per-queue"},
	}
)
