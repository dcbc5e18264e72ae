// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/ringcap/ringcap/bench/report"

// What is measured on: sensors have many processors, so the goals are for many.
var (
	many       = report.Setting{Series: "6.1", Possible: 64, Producers: 1}
	manyOn612  = report.Setting{Series: "6.12", Possible: 64, Producers: 1}
	fourAtOnce = report.Setting{Series: "6.1", Possible: 64, Producers: 4}
	eight      = report.Setting{Series: "6.1", Possible: 8, Producers: 1}
	one        = report.Setting{Series: "6.1", Possible: 1, Producers: 1}
)

const (
	module  = "ringcap"
	ebpf    = "ringcap-ebpf"
	sockets = "tpacket-v3"
	fanout  = "tpacket-v3-fanout-hash"

	passes  = "tcp-port-80-passes"
	rejects = "tcp-port-80-rejects"
)

// plain is a reader of everything, with so many queues.
func plain(on report.Setting, who string, queues int) report.Key {
	return report.Key{Case: "plain", Who: who, Queues: queues, On: on}
}

// with is a reader with one queue in another case.
func with(what, who string) report.Key {
	return report.Key{Case: what, Who: who, Queues: 1, On: many}
}

func user(r report.Row) float64   { return r.InstructionsUser }
func kernel(r report.Row) float64 { return r.InstructionsKernel }
func locked(r report.Row) float64 { return r.LockedOperations }

// saved is what the baseline, with an idle module, costs more.
func saved(r report.Row) float64 { return -r.Total() }

func judge(rows *report.Rows) {
	oneQueue, fourQueues, tpacket := plain(many, module, 1), plain(many, module, 4), plain(many, sockets, 1)
	rows.LimitRatio("module, one queue / TPACKET_V3", 0.45, oneQueue, tpacket)
	rows.LimitRatio("module, four queues by flow / PACKET_FANOUT_HASH", 0.27, fourQueues, plain(many, fanout, 4))
	rows.LimitRatio("module, four producers, one queue / TPACKET_V3", 0.45,
		plain(fourAtOnce, module, 1), plain(fourAtOnce, sockets, 1))
	rows.LimitRatio("module, four producers, four queues by flow / PACKET_FANOUT_HASH", 0.30,
		plain(fourAtOnce, module, 4), plain(fourAtOnce, fanout, 4))
	rows.Limit("module, locked operations, one queue", 1.15, locked, oneQueue)
	rows.Limit("module, locked operations, four queues", 1.15, locked, fourQueues)
	rows.Limit("module, locked operations, four producers, one queue", 1.15, locked, plain(fourAtOnce, module, 1))
	rows.Limit("module, locked operations, four producers, four queues", 1.15, locked, plain(fourAtOnce, module, 4))
	rows.LimitRatio("eBPF, one queue / TPACKET_V3, clsact on 6.1", 0.75, plain(many, ebpf, 1), tpacket)
	rows.LimitRatio("eBPF, one queue / TPACKET_V3, tcx on 6.12", 0.60, plain(manyOn612, ebpf, 1), plain(manyOn612, sockets, 1))
	rows.LimitRatioAt(512, "eBPF, one queue / TPACKET_V3, 512 bytes", 0.90, plain(many, ebpf, 1), tpacket)
	rows.LimitRatioAt(1500, "eBPF, one queue / TPACKET_V3, 1500 bytes", 0.90, plain(many, ebpf, 1), tpacket)
	rows.LimitRatio("eBPF, four queues by flow / PACKET_FANOUT_HASH", 0.45, plain(many, ebpf, 4), plain(many, fanout, 4))
	rows.Limit("module, consumer's instructions, libringcap", 16, user, oneQueue)
	rows.Limit("eBPF, consumer's instructions, libringcap", 16, user, plain(many, ebpf, 1))
	rows.Limit("module, consumer's instructions, libpcap", 60, user, with("libpcap", module))
	rows.Limit("eBPF, consumer's instructions, libpcap", 60, user, with("libpcap", ebpf))
	rows.LimitAdded("module, what `tcp port 80` adds, traffic that passes / added to TPACKET_V3", 1,
		with(passes, module), oneQueue, with(passes, sockets), tpacket)
	rows.LimitAdded("eBPF, what `tcp port 80` adds, traffic that passes / added to TPACKET_V3", 1.2,
		with(passes, ebpf), plain(many, ebpf, 1), with(passes, sockets), tpacket)
	rows.LimitRatio("module, `tcp port 80`, traffic that does not pass / TPACKET_V3", 1, with(rejects, module), with(rejects, sockets))
	rows.LimitRatio("eBPF, `tcp port 80`, traffic that does not pass / TPACKET_V3", 1.2, with(rejects, ebpf), with(rejects, sockets))
	rows.Limit("module, 1,000 exact rules, kernel", 450, kernel, with("1000-exact-rules", module))
	rows.Limit("module, 64 shunted flows, kernel", 350, kernel, with("shunted", module))
	rows.Limit("module, 10 wildcard rules of 8 shapes, kernel", 650, kernel, with("10-wildcard-rules", module))
	rows.Limit("module, 10,000 wildcard rules of 8 shapes, kernel", 650, kernel, with("10000-wildcard-rules", module))
	rows.Limit("eBPF, 64 flows learnt as exact rules, kernel", 700, kernel, with("learnt-flows", ebpf))
	rows.Limit("eBPF, 10 wildcard rules of 8 shapes, kernel", 1000, kernel, with("10-wildcard-rules", ebpf))
	rows.Limit("eBPF, 4,096 wildcard rules of 8 shapes, kernel", 1000, kernel, with("4096-wildcard-rules", ebpf))
	rows.LimitPerByte("module, 1,000 patterns, each byte more", 5, with("1000-patterns", module), report.Smallest, 1500)
	rows.LimitPerByte("eBPF, 1,000 patterns, each byte more", 12, with("1000-patterns", ebpf), report.Smallest, 1500)
	rows.Limit("instructions of other traffic by an idle module", 5, saved,
		report.Key{Case: "no-module", Who: "no-reader", On: many})
}
