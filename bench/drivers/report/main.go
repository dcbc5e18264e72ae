// SPDX-License-Identifier: Apache-2.0

// Command report is that of bench/drivers: the receive side of network cards, with stock and with capture-aware drivers.
package main

import (
	"fmt"
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

	stackMirrored   = key("igb-stock-mirrored", "no-reader", 1)
	tpacketMirrored = key("igb-stock-mirrored", "tpacket-v3", 1)
	mode1Mirrored   = key("igb-aware-mirrored", "mode-1", 1)
	mode2Mirrored   = key("igb-aware-mirrored", "mode-2", 1)
)

func judge(rows *report.Rows) {
	rows.LimitRatio("igb, mode 2 before the skb / TPACKET_V3", 0.20, mode2, tpacket)
	rows.LimitRatio("igb, mode 2 before the skb / TPACKET_V3, mirrored traffic", 0.20, mode2Mirrored, tpacketMirrored)
	rows.LimitRatio("igb, mode 2 before the skb / AF_XDP, copy mode", 0.65, mode2, xdp)
	rows.LimitRatio("igb, mode 2 on the skb / TPACKET_V3", 0.40, mode2SKB, tpacket)
	rows.LimitRatio("igb, mode 1 / the stack alone", 1.12, mode1, stack)
	rows.LimitRatio("igb, mode 1 / the stack alone, mirrored traffic", 1.12, mode1Mirrored, stackMirrored)
	for _, queues := range []int{2, 4} {
		rows.LimitRatio(fmt.Sprintf("igb, mode 2, %d queues / 1", queues), 1.05, key("igb-aware", "mode-2-per-queue", queues), mode2)
	}
	rows.LimitRatio("igb, aware driver without a ring / stock driver", 1.01, idle, stack)
}

func markdown(result report.Result) string {
	t := report.NewTables(result)
	for _, card := range []string{"igb", "e1000e"} {
		t.Table([]string{card, "60 bytes", "512 bytes", "1500 bytes"}, bySize(t, card))
	}
	t.Table([]string{"igb, 60 bytes", "1 queue", "2 queues", "4 queues"}, byQueues(t))
	t.Table([]string{"igb, 60 bytes", "for this host", "mirrored", "an interrupt for each packet"}, byTraffic(t))
	t.Goals()
	t.Dominators(tpacket, xdp, mode1, mode2, mode2SKB)
	return t.String()
}

func bySize(t *report.Tables, card string) []report.Line {
	readers := []struct{ label, what, who string }{
		{"stock driver, no reader", "-stock", "no-reader"},
		{"stock driver, TPACKET_V3", "-stock", "tpacket-v3"},
		{"stock driver, AF_XDP, copy mode", "-stock", "af-xdp-copy"},
		{"aware driver, no ring", "-aware", "no-reader"},
		{"aware driver, mode 0", "-aware", "mode-0"},
		{"aware driver, mode 1", "-aware", "mode-1"},
		{"aware driver, mode 2 on the skb", "-aware-skb", "mode-2"},
		{"aware driver, mode 2 before the skb", "-aware", "mode-2"},
	}
	var lines []report.Line
	for _, reader := range readers {
		l := report.Line{Label: reader.label}
		for _, size := range []int{report.Smallest, 512, 1500} {
			l.Cells = append(l.Cells, t.Cell(key(card+reader.what, reader.who, 1), size))
		}
		lines = append(lines, l)
	}
	return lines
}

func byQueues(t *report.Tables) []report.Line {
	readers := []struct{ label, what, who string }{
		{"stock driver, no reader", "igb-stock", "no-reader"},
		{"stock driver, no reader, threaded polling", "igb-stock-threaded", "no-reader"},
		{"stock driver, TPACKET_V3", "igb-stock", "tpacket-v3"},
		{"aware driver, mode 0", "igb-aware", "mode-0"},
		{"aware driver, mode 1", "igb-aware", "mode-1"},
		{"aware driver, mode 2", "igb-aware", "mode-2"},
		{"aware driver, mode 2, a ring's queue for each of the card's", "igb-aware", "mode-2-per-queue"},
		{"the same, threaded polling", "igb-aware-threaded", "mode-2-per-queue"},
	}
	var lines []report.Line
	for _, reader := range readers {
		l := report.Line{Label: reader.label}
		for _, queues := range []int{1, 2, 4} {
			l.Cells = append(l.Cells, t.Cell(key(reader.what, reader.who, queues), report.Smallest))
		}
		lines = append(lines, l)
	}
	return lines
}

func byTraffic(t *report.Tables) []report.Line {
	readers := []struct{ label, what, who string }{
		{"stock driver, no reader", "igb-stock", "no-reader"},
		{"stock driver, TPACKET_V3", "igb-stock", "tpacket-v3"},
		{"stock driver, AF_XDP, copy mode", "igb-stock", "af-xdp-copy"},
		{"aware driver, mode 1", "igb-aware", "mode-1"},
		{"aware driver, mode 2", "igb-aware", "mode-2"},
	}
	var lines []report.Line
	for _, reader := range readers {
		l := report.Line{Label: reader.label}
		for _, kind := range []string{"", "-mirrored", "-idle"} {
			l.Cells = append(l.Cells, t.Cell(key(reader.what+kind, reader.who, 1), report.Smallest))
		}
		lines = append(lines, l)
	}
	return lines
}
