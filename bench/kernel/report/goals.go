// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/ringcap/ringcap/bench/report"

var (
	oneQueue   = report.Key{Case: "plain", Who: "ringcap", Queues: 1}
	fourQueues = report.Key{Case: "plain", Who: "ringcap", Queues: 4}
	quick      = report.Key{Case: "plain", Who: "ringcap-quick", Queues: 1}
	tpacket    = report.Key{Case: "plain", Who: "tpacket-v3", Queues: 1}
	fanout     = report.Key{Case: "plain", Who: "tpacket-v3-fanout-hash", Queues: 4}
	pcap       = report.Key{Case: "libpcap", Who: "ringcap", Queues: 1}
	fewRules   = report.Key{Case: "10-wildcard-rules", Who: "ringcap", Queues: 1}
	manyRules  = report.Key{Case: "10000-wildcard-rules", Who: "ringcap", Queues: 1}
	noModule   = report.Key{Case: "no-module", Who: "no-reader", Queues: 0}
)

func user(r report.Row) float64   { return r.InstructionsUser }
func locked(r report.Row) float64 { return r.LockedOperations }

// saved is what the baseline, with an idle module, costs more.
func saved(r report.Row) float64 { return -r.Total() }

func judge(rows *report.Rows) {
	rows.LimitRatio("one queue / TPACKET_V3", 0.50, oneQueue, tpacket)
	rows.LimitRatio("four balanced queues / PACKET_FANOUT_HASH", 0.27, fourQueues, fanout)
	rows.LimitRatio("quick mode / TPACKET_V3", 0.45, quick, tpacket)
	rows.Limit("locked operations, one queue", 1, locked, oneQueue)
	rows.Limit("locked operations, four queues", 1, locked, fourQueues)
	rows.Limit("consumer's instructions, libringcap", 15, user, oneQueue)
	rows.Limit("consumer's instructions, libpcap", 60, user, pcap)
	rows.LimitRatio("10,000 wildcard rules of 8 shapes / 10", 1.5, manyRules, fewRules)
	rows.Limit("instructions of other traffic by an idle module", 5, saved, noModule)
}
