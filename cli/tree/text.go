// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// signs are readable without colour.
var signs = map[Health]string{Failed: "✗", Degraded: "!", Healthy: "✓"}

// Number formats a number with commas between thousands.
func Number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && digits[i-1] != '-' && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// Text prints the tree for users.
func Text(w io.Writer, t Tree) error {
	p := &printer{w: w}
	if len(t.Rings) == 0 {
		p.line("no CaptureRings: kubectl apply -f examples/mirror.yaml makes one")
	}
	for _, problem := range t.Problems {
		p.line("✗ %s", problem)
	}
	for i, ring := range t.Rings {
		if i > 0 {
			p.line("")
		}
		p.ring(ring)
	}
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

func (p *printer) ring(r Ring) {
	p.line("%s CaptureRing %s   %s", signs[r.Health], r.Name, r.Account)
	for _, problem := range r.Problems {
		p.line("│   %s", problem)
	}
	for i, node := range r.Nodes {
		p.node(node, i == len(r.Nodes)-1)
	}
}

// String formats the account as a sum; rare terms are left out if they are 0.
func (a Account) String() string {
	text := fmt.Sprintf("seen %s = filtered %s + sampled out %s", Number(a.Seen), Number(a.Filtered), Number(a.SampledOut))
	for _, rare := range []struct {
		name    string
		packets int64
	}{{"reflected", a.Reflected}, {"absorbed", a.Absorbed}, {"directed", a.Directed}} {
		if rare.packets != 0 {
			text += fmt.Sprintf(" + %s %s", rare.name, Number(rare.packets))
		}
	}
	return text + " + passed " + Number(a.Passed)
}

func (p *printer) node(n Node, last bool) {
	branch, below := "├── ", "│   "
	if last {
		branch, below = "└── ", "    "
	}
	engine := string(n.Engine)
	if n.EngineReason != "" {
		engine += " (" + n.EngineReason + ")"
	}
	p.line("%s%s node %s   %s   %s", branch, signs[n.Health], n.Name, strings.Join(n.Interfaces, ","), engine)
	if n.Problem != "" {
		p.line("%s    %s", below, n.Problem)
	}
	if n.Engine != "" {
		p.line("%s    %s", below, n.Account)
		if n.Inline != nil {
			p.line("%s    %s", below, inlineRing(n.Inline, n.Passed))
		}
		if n.CountersAge != "" {
			p.line("%s    counters are of %s ago: %s", below, n.CountersAge, n.CountersWhy)
		}
	}
	for i, queue := range n.Queues {
		p.queue(queue, below, i+1 == len(n.Queues)+len(n.Unlisted))
	}
	for i, rest := range n.Unlisted {
		p.unlisted(rest, below, i+1 == len(n.Unlisted))
	}
}

func (p *printer) unlisted(u Unlisted, indent string, last bool) {
	p.line("%s%s%s %s: %s queues more, summed up (each: ringcap_queue_* of the agent's metrics)   %s, unread %s B   %s",
		indent, fork(last), signs[u.Health], u.Set, Number(int64(u.Queues)), delivered(u.Delivered, u.Truncated, u.Shunted), Number(u.UnreadBytes), u.Problem)
}

// delivered formats the numbers of delivered, truncated and shunted packets.
func delivered(packets, truncated, shunted int64) string {
	text := "delivered " + Number(packets)
	if truncated != 0 {
		text += ", truncated " + Number(truncated)
	}
	if shunted != 0 {
		text += ", shunted " + Number(shunted)
	}
	return text
}

func fork(last bool) string {
	if last {
		return "└── "
	}
	return "├── "
}

func (p *printer) queue(q Queue, indent string, last bool) {
	consumer := q.Consumer
	switch {
	case consumer != "" && !q.Attached:
		consumer = "given to " + consumer
	case consumer == "" && q.Attached:
		consumer = cmp.Or(q.Holder, "a consumer on the node")
	}
	if q.ConsumerAge != "" {
		consumer += fmt.Sprintf(" (%s ago; the kubelet does not report it now)", q.ConsumerAge)
	}
	if q.Problem != "" && consumer != "" {
		consumer += "   "
	}
	counted := delivered(q.Delivered, q.Truncated, q.Shunted)
	if q.Inline != nil {
		counted = verdicts(q.Inline)
	}
	p.line("%s%s%s %s@%d   %s, unread %s B   %s%s", indent, fork(last), signs[q.Health], q.Set, q.Queue,
		counted, Number(q.UnreadBytes), consumer, q.Problem)
}
