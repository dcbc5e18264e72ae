// SPDX-License-Identifier: Apache-2.0

// Package explain explains why a ring would or would not capture a packet. Apart from compiling filter expressions, which
// callers provide, it is pure. It never guesses what only a node's kernel can know: it reports that it depends on that.
package explain

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"

	"golang.org/x/net/bpf"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Verdict is the result for a packet.
type Verdict string

// The verdicts.
const (
	Captured    Verdict = "Captured"
	NotCaptured Verdict = "NotCaptured"
	// Depends: the result depends on what is unknown here.
	Depends Verdict = "Depends"
)

// Step is one check of a packet.
type Step struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
}

// Compile compiles an expression into a classic BPF program over packets as on the wire.
type Compile func(expression string) ([]bpf.RawInstruction, error)

// filter is a v1.Filter that is ready to use.
type filter struct {
	spec  v1.Filter
	vm    *bpf.VM // nil = no bpf
	rules []rule
}

func newFilter(spec *v1.Filter, compile Compile) (*filter, error) {
	f := &filter{}
	if spec == nil {
		return f, nil
	}
	f.spec = *spec
	var err error
	if f.rules, err = readRules(spec.Rules); err != nil {
		return nil, err
	}
	if spec.BPF == "" {
		return f, nil
	}
	raw, err := compile(spec.BPF)
	if err != nil {
		return nil, fmt.Errorf("filter.bpf: %w", err)
	}
	program, _ := bpf.Disassemble(raw)
	if f.vm, err = bpf.NewVM(program); err != nil {
		return nil, fmt.Errorf("filter.bpf: %w", err)
	}
	return f, nil
}

// packet is the packet in question.
type packet struct {
	headers
	// bytes on the wire. synthetic: the payload is unknown, not empty.
	bytes     []byte
	synthetic bool
}

// steps runs all parts of a filter in the kernel's order, up to the one that rejects.
func (f *filter) steps(p packet) []Step {
	var steps []Step
	for _, ask := range []func(packet) *Step{f.bpf, f.vlans, f.byRules, f.payload, f.plugins} {
		step := ask(p)
		if step == nil {
			continue
		}
		steps = append(steps, *step)
		if step.Verdict == NotCaptured {
			break
		}
	}
	return steps
}

func (f *filter) bpf(p packet) *Step {
	if f.vm == nil {
		return nil
	}
	quoted := fmt.Sprintf("filter.bpf %q", f.spec.BPF)
	if len(p.headers.vlans) > 0 && !strings.Contains(f.spec.BPF, "vlan") {
		quoted = "(without the word vlan, pcap-filter looks at packets without a tag only, and this one has one) " + quoted
	}
	switch n, err := f.vm.Run(p.bytes); {
	case err != nil:
		return &Step{"bpf", Depends, fmt.Sprintf("%s: %v", quoted, err)}
	case n == 0:
		return &Step{"bpf", NotCaptured, quoted + " does not match"}
	}
	return &Step{"bpf", Captured, quoted + " matches"}
}

func (f *filter) vlans(p packet) *Step {
	if len(f.spec.VLANs) == 0 {
		return nil
	}
	for _, id := range f.spec.VLANs {
		if id == int32(p.vlan(0)) {
			return &Step{"vlans", Captured, fmt.Sprintf("VLAN %d is in filter.vlans", id)}
		}
	}
	return &Step{"vlans", NotCaptured, fmt.Sprintf("VLAN %d (0 = no tag) is not in filter.vlans", p.vlan(0))}
}

func (f *filter) byRules(p packet) *Step {
	if len(f.rules) == 0 && f.spec.DefaultAction == "" {
		return nil
	}
	decided, unknown := decide(f.rules, p.headers)
	switch {
	case unknown != nil:
		why := "it asks for what is inside of tunnels, which only the node's kernel parses"
		if p.unsure != "" {
			why = p.unsure
		}
		return &Step{"rules", Depends, fmt.Sprintf("%s may decide: %s", unknown.name, why)}
	case decided == nil && f.spec.DefaultAction == v1.DefaultActionDrop:
		return &Step{"rules", NotCaptured, "no rule matches, and filter.defaultAction is Drop"}
	case decided == nil:
		return &Step{"rules", Captured, "no rule matches, and filter.defaultAction is Pass"}
	}
	switch decided.Action {
	case v1.RuleDrop:
		return &Step{"rules", NotCaptured, decided.name + " matches: Drop"}
	case v1.RuleReflect:
		return &Step{"rules", NotCaptured, decided.name + " matches: Reflect, out of " + decided.ReflectTo + " and nowhere else"}
	case v1.RuleQueue:
		return &Step{"rules", Captured, fmt.Sprintf("%s matches: to queue %d of %s only", decided.name, decided.Queue.Queue,
			decided.Queue.Cluster)}
	}
	return &Step{"rules", Captured, fmt.Sprintf("%s matches: %s", decided.name, decided.Action)}
}

func (f *filter) payload(p packet) *Step {
	if len(f.spec.Payload) == 0 {
		return nil
	}
	if p.synthetic {
		return &Step{"payload", Depends, fmt.Sprintf("%d patterns are looked for in the payload: ask with --pcap", len(f.spec.Payload))}
	}
	if p.unsure != "" {
		return &Step{"payload", Depends, p.unsure}
	}
	found := -1
	for i, pattern := range f.spec.Payload {
		if contains(p.headers.payload, pattern) {
			found = i
			break
		}
	}
	passes := (found >= 0) == (f.spec.PayloadAction != v1.DefaultActionDrop)
	why := "no pattern of filter.payload is found"
	if found >= 0 {
		why = fmt.Sprintf("pattern %d of filter.payload is found", found+1)
	}
	if passes {
		return &Step{"payload", Captured, why}
	}
	return &Step{"payload", NotCaptured, why}
}

func contains(payload []byte, pattern v1.PayloadPattern) bool {
	want := []byte(pattern.Text)
	if pattern.Hex != "" {
		want, _ = hex.DecodeString(pattern.Hex)
	}
	payload = payload[min(int(pattern.Offset), len(payload)):]
	if pattern.Depth > 0 {
		payload = payload[:min(int(pattern.Depth), len(payload))]
	}
	if pattern.IgnoreCase {
		payload, want = lower(payload), lower(want)
	}
	return bytes.Contains(payload, want)
}

// lower converts ASCII only, as the kernel does.
func lower(text []byte) []byte {
	out := bytes.Clone(text)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

func (f *filter) plugins(packet) *Step {
	if len(f.spec.Plugins) == 0 {
		return nil
	}
	return &Step{"plugins", Depends, fmt.Sprintf("plugin %s of the node's kernel is asked", f.spec.Plugins[0].Name)}
}
