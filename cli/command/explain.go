// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/cli/explain"
	"github.com/ringcap/ringcap/filter"
)

// wholePacket is what compiled filters return for packets that match, in bytes.
const wholePacket = 262144

func (a *app) explain() *cobra.Command {
	var pcap string
	var vlan uint16
	cmd := &cobra.Command{
		Use:   "explain RING (PROTOCOL SOURCE[:PORT] DESTINATION[:PORT] | --pcap FILE)",
		Short: "why a packet would or would not be captured",
		Long: `Explains what a ring of the cluster does with one packet, or with all packets of a file in pcap or pcapng format: where it
captures, how each step of its filter decides, and which queues get the packet. A packet given by its addresses is a TCP packet
with ACK set, a UDP, SCTP or ICMP packet, without payload.

What only a node's kernel knows (plugins, what is inside of tunnels, ports of fragments) is answered with "depends".
Filter expressions are compiled by rcbpf, the same program that nodes use: beside ringcap, in the path, or $RINGCAP_RCBPF.

Exit code 3: the packet would not be captured, or no packet of the file.`,
		Example: `  ringcap explain mirror tcp 10.0.0.1:40000 10.0.0.2:443
  ringcap explain mirror udp [2001:db8::1]:53 [2001:db8::2]:53 --vlan 12
  ringcap explain mirror --pcap trace.pcap`,
		ValidArgsFunction: a.completeRings,
	}
	o := outputFlag(cmd)
	cmd.Flags().StringVar(&pcap, "pcap", "", "capture to ask about, - for standard input")
	cmd.Flags().Uint16Var(&vlan, "vlan", 0, "id of the packet's VLAN tag, 1 to 4094; 0 is no tag")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case pcap == "" && len(args) != 4:
			return usagef("give RING PROTOCOL SOURCE DESTINATION, or RING --pcap FILE")
		case pcap != "" && len(args) != 1:
			return usagef("with --pcap give RING only")
		case vlan > 4094:
			return usagef("--vlan: %d is not an id of a VLAN: 1 to 4094", vlan)
		}
		var tuple explain.Tuple
		if pcap == "" {
			var err error
			if tuple, err = tupleOf(args[1:], vlan); err != nil {
				return err
			}
		}
		ring, err := a.ringToAsk(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if pcap != "" {
			return a.explainFile(*o, args[0], ring, pcap)
		}
		return a.explainTuple(*o, args[0], ring, tuple)
	}
	return cmd
}

func tupleOf(args []string, vlan uint16) (explain.Tuple, error) {
	t := explain.Tuple{Protocol: args[0], VLAN: vlan}
	for i, into := range []struct {
		address *netip.Addr
		port    *uint16
	}{{&t.Source, &t.SourcePort}, {&t.Destination, &t.DestinationPort}} {
		text := args[i+1]
		if both, err := netip.ParseAddrPort(text); err == nil {
			*into.address, *into.port = both.Addr(), both.Port()
			continue
		}
		address, err := netip.ParseAddr(text)
		if err != nil {
			return t, usagef("%q is not an address, such as 10.0.0.1, 10.0.0.1:443 or [2001:db8::1]:443", text)
		}
		if args[0] != "icmp" {
			return t, usagef("%q: %s needs a port, as %s", text, args[0], netip.AddrPortFrom(address, 443))
		}
		*into.address = address
	}
	if _, err := t.Packet(); err != nil {
		return t, usageError{err}
	}
	return t, nil
}

func (a *app) ringToAsk(ctx context.Context, name string) (*explain.Ring, error) {
	_, s, err := a.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	ring := s.Ring(name)
	if ring == nil {
		return nil, noRing(s, name)
	}
	return explain.New(s, ring, func(expression string) ([]bpf.RawInstruction, error) {
		return filter.Compile(ctx, expression, wholePacket)
	})
}

func (a *app) explainTuple(o output, name string, ring *explain.Ring, tuple explain.Tuple) error {
	data, err := tuple.Packet()
	if err != nil {
		return err
	}
	answer := ring.Packet(data, true)
	if !ring.Tapped() {
		answer.Verdict = explain.NotCaptured
	}
	value := struct {
		Ring       string         `json:"ring"`
		Placements []explain.Step `json:"places"`
		explain.Answer
	}{name, ring.Placements(), answer}
	err = o.write(a.Out, value, func(w io.Writer) error { return explain.Text(w, name, ring.Placements(), answer) })
	if err == nil && answer.Verdict == explain.NotCaptured {
		return errBad
	}
	return err
}

func (a *app) explainFile(o output, name string, ring *explain.Ring, path string) error {
	in := a.In
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	summary, err := ring.File(in)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	value := struct {
		Ring       string         `json:"ring"`
		Placements []explain.Step `json:"places"`
		explain.Summary
	}{name, ring.Placements(), summary}
	err = o.write(a.Out, value, func(w io.Writer) error { return explain.SummaryText(w, name, ring.Placements(), summary) })
	if err == nil && (summary.Captured+summary.Depends == 0 || !ring.Tapped()) {
		return errBad
	}
	return err
}
