// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ringcap/ringcap/cli/fleet"
	"github.com/ringcap/ringcap/operator/api/rules"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// port80 stands for what rcbpf makes of "ip and tcp dst port 80".
func port80(string) ([]bpf.RawInstruction, error) {
	return bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 36, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 80, SkipFalse: 1},
		bpf.RetConstant{Val: 65535},
		bpf.RetConstant{Val: 0},
	})
}

func ringWith(t *testing.T, f *v1.Filter, change func(*v1.CaptureRing)) *Ring {
	t.Helper()
	ring := v1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: v1.CaptureRingSpec{Queues: v1.Queues(1), Filter: f}}
	if change != nil {
		change(&ring)
	}
	r, err := New(fleet.Snapshot{Now: time.Now(), Rings: []v1.CaptureRing{ring}}, &ring, port80)
	require.NoError(t, err)
	return r
}

func tuple(protocol, source, destination string) Tuple {
	s, d := netip.MustParseAddrPort(source), netip.MustParseAddrPort(destination)
	return Tuple{Protocol: protocol, Source: s.Addr(), Destination: d.Addr(), SourcePort: s.Port(), DestinationPort: d.Port()}
}

func bytesOf(t *testing.T, p Tuple) []byte {
	t.Helper()
	data, err := p.Packet()
	require.NoError(t, err)
	return data
}

func port(text string) *intstr.IntOrString { p := intstr.Parse(text); return &p }

func ptr[T any](v T) *T { return &v }

func TestRules(t *testing.T) {
	web := tuple("tcp", "10.0.0.1:40000", "10.0.0.2:80")
	tagged := web
	tagged.VLAN = 12
	for name, test := range map[string]struct {
		packet Tuple
		match  v1.RuleMatch
		want   answer
	}{
		"everything":           {web, v1.RuleMatch{}, yes},
		"prefix":               {web, v1.RuleMatch{Source: "10.0.0.0/8"}, yes},
		"another prefix":       {web, v1.RuleMatch{Source: "10.1.0.0/16"}, no},
		"an address":           {web, v1.RuleMatch{Destination: "10.0.0.2"}, yes},
		"the other version":    {web, v1.RuleMatch{Source: "::/0"}, no},
		"port":                 {web, v1.RuleMatch{DestinationPort: port("80")}, yes},
		"range":                {web, v1.RuleMatch{SourcePort: port("1024-65535")}, yes},
		"below the range":      {web, v1.RuleMatch{SourcePort: port("40001-65535")}, no},
		"the other way":        {web, v1.RuleMatch{SourcePort: port("80")}, no},
		"both ways":            {web, v1.RuleMatch{SourcePort: port("80"), Bidirectional: true}, yes},
		"protocol":             {web, v1.RuleMatch{Protocol: port("TCP")}, yes},
		"protocol's number":    {web, v1.RuleMatch{Protocol: port("17")}, no},
		"flag":                 {web, v1.RuleMatch{TCPFlagsSet: []v1.TCPFlag{v1.TCPFlagACK}}, yes},
		"flag that is not set": {web, v1.RuleMatch{TCPFlagsSet: []v1.TCPFlag{v1.TCPFlagSYN}}, no},
		"flag that is":         {web, v1.RuleMatch{TCPFlagsClear: []v1.TCPFlag{v1.TCPFlagACK}}, no},
		"flags of UDP":         {tuple("udp", "10.0.0.1:1", "10.0.0.2:2"), v1.RuleMatch{TCPFlagsClear: []v1.TCPFlag{v1.TCPFlagACK}}, no},
		"VLAN":                 {tagged, v1.RuleMatch{VLAN: ptr[int32](12)}, yes},
		"no tag":               {web, v1.RuleMatch{VLAN: ptr[int32](0)}, yes},
		"ports behind a tag":   {tagged, v1.RuleMatch{DestinationPort: port("80")}, yes},
		"no second tag":        {tagged, v1.RuleMatch{InnerVLAN: ptr[int32](5)}, no},
		"ether type":           {tagged, v1.RuleMatch{EtherType: ptr[int32](0x800)}, yes},
		"MAC":                  {web, v1.RuleMatch{SourceMAC: "02:00:00:00:00:01"}, yes},
		"another MAC":          {web, v1.RuleMatch{SourceMAC: "02:00:00:00:00:02"}, no},
		"tunnel":               {web, v1.RuleMatch{TunnelID: ptr[int64](7)}, perhaps},
		"tunnel, elsewhere":    {web, v1.RuleMatch{TunnelID: ptr[int64](7), Source: "192.0.2.0/24"}, no},
	} {
		t.Run(name, func(t *testing.T) {
			match, err := rules.Parse(test.match)
			require.NoError(t, err)
			require.Equal(t, test.want, matches(match, parse(bytesOf(t, test.packet))))
		})
	}
}

func TestPriorityDecides(t *testing.T) {
	h := parse(bytesOf(t, tuple("tcp", "10.0.0.1:40000", "10.0.0.2:80")))
	specs := []v1.Rule{{}, {Priority: 5, Match: v1.RuleMatch{Source: "192.0.2.1"}}, {Priority: 3, Name: "three"}, {Priority: 3}}
	list, err := readRules(specs)
	require.NoError(t, err)
	decided, unknown := decide(list, h)
	require.Equal(t, `rule "three"`, decided.name)
	require.Nil(t, unknown)
	list, err = readRules(append(specs, v1.Rule{Priority: 9, Match: v1.RuleMatch{TunnelID: ptr[int64](1)}}))
	require.NoError(t, err)
	decided, unknown = decide(list, h)
	require.Equal(t, []string{`rule "three"`, "rule 5"}, []string{decided.name, unknown.name})
}

func TestVerdicts(t *testing.T) {
	web := tuple("tcp", "10.0.0.1:40000", "10.0.0.2:80")
	drop := v1.DefaultActionDrop
	for name, test := range map[string]struct {
		filter *v1.Filter
		change func(*v1.CaptureRing)
		want   Verdict
	}{
		"no filter":       {nil, nil, Captured},
		"bpf":             {&v1.Filter{BPF: "port 80"}, nil, Captured},
		"VLAN":            {&v1.Filter{VLANs: []int32{3}}, nil, NotCaptured},
		"no tag":          {&v1.Filter{VLANs: []int32{0}}, nil, Captured},
		"default":         {&v1.Filter{DefaultAction: drop}, nil, NotCaptured},
		"reflected":       {&v1.Filter{Rules: []v1.Rule{{Action: v1.RuleReflect, ReflectTo: "eth1"}}}, nil, NotCaptured},
		"payload":         {&v1.Filter{Payload: []v1.PayloadPattern{{Text: "GET"}}}, nil, Depends},
		"plugin":          {&v1.Filter{Plugins: []v1.Plugin{{Name: "p"}}}, nil, Depends},
		"sampled":         {nil, func(r *v1.CaptureRing) { r.Spec.Sampling = &v1.Sampling{OneIn: 10} }, Depends},
		"nobody to get":   {nil, func(r *v1.CaptureRing) { r.Spec.Queues = nil }, NotCaptured},
		"directed":        {&v1.Filter{Rules: []v1.Rule{{Action: v1.RuleQueue, Queue: &v1.QueueReference{Cluster: "c"}}}}, nil, Captured},
		"perhaps a rule":  {&v1.Filter{Rules: []v1.Rule{{Action: v1.RuleDrop, Match: v1.RuleMatch{InnerSource: "::1"}}}}, nil, Depends},
		"not the payload": {&v1.Filter{VLANs: []int32{3}, Payload: []v1.PayloadPattern{{Text: "GET"}}}, nil, NotCaptured},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, ringWith(t, test.filter, test.change).Packet(bytesOf(t, web), true).Verdict)
		})
	}
}

func TestPayload(t *testing.T) {
	for name, test := range map[string]struct {
		pattern v1.PayloadPattern
		want    bool
	}{
		"text":            {v1.PayloadPattern{Text: "Host"}, true},
		"case":            {v1.PayloadPattern{Text: "hoST"}, false},
		"either case":     {v1.PayloadPattern{Text: "hoST", IgnoreCase: true}, true},
		"hex":             {v1.PayloadPattern{Hex: "486f7374"}, true},
		"behind offset":   {v1.PayloadPattern{Text: "Host", Offset: 5}, false},
		"at offset":       {v1.PayloadPattern{Text: "Host", Offset: 4}, true},
		"within depth":    {v1.PayloadPattern{Text: "Host", Depth: 8}, true},
		"beyond depth":    {v1.PayloadPattern{Text: "Host", Depth: 7}, false},
		"beyond all":      {v1.PayloadPattern{Text: "Host", Offset: 60000}, false},
		"not in payload":  {v1.PayloadPattern{Text: "POST"}, false},
		"depth and start": {v1.PayloadPattern{Text: "Host", Offset: 2, Depth: 6}, true},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, contains([]byte("GET Host: a"), test.pattern)) })
	}
}

func TestWherePayloadIs(t *testing.T) {
	ethernet := func(kind layers.EthernetType) *layers.Ethernet {
		return &layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: kind}
	}
	ip := func(protocol layers.IPProtocol, last byte) *layers.IPv4 {
		return &layers.IPv4{Version: 4, TTL: 64, Protocol: protocol, SrcIP: net.IP{10, 0, 0, last}, DstIP: net.IP{10, 0, 0, 9}}
	}
	ip6 := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolICMPv6, SrcIP: make([]byte, 16), DstIP: make([]byte, 16)}
	text := gopacket.Payload("payload")
	for name, test := range map[string]struct {
		packet []gopacket.SerializableLayer
		want   string
	}{
		"UDP":     {[]gopacket.SerializableLayer{ethernet(0x800), ip(17, 1), &layers.UDP{}, text}, "payload"},
		"ICMP":    {[]gopacket.SerializableLayer{ethernet(0x800), ip(1, 1), &layers.ICMPv4{}, text}, "payload"},
		"ICMPv6":  {[]gopacket.SerializableLayer{ethernet(0x86dd), ip6, &layers.ICMPv6{}, gopacket.Payload("abcd"), text}, "payload"},
		"OSPF":    {[]gopacket.SerializableLayer{ethernet(0x800), ip(89, 1), text}, "payload"},
		"unknown": {[]gopacket.SerializableLayer{ethernet(0x800), ip(253, 1), text}, "payload"},
		"not IP":  {[]gopacket.SerializableLayer{ethernet(0x88b5), text}, "payload"},
		"tagged":  {[]gopacket.SerializableLayer{ethernet(0x8100), &layers.Dot1Q{Type: 0x88b5}, text}, "payload"},
		"IP in IP": {[]gopacket.SerializableLayer{ethernet(0x800), ip(4, 1), ip(253, 2), text},
			"\x45\x00\x00\x1b\x00\x00\x00\x00\x40\xfd\x00\x00\x0a\x00\x00\x02\x0a\x00\x00\x09payload"},
	} {
		t.Run(name, func(t *testing.T) {
			buffer := gopacket.NewSerializeBuffer()
			require.NoError(t, gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true}, test.packet...))
			h := parse(buffer.Bytes())
			// Frames that are not IP have no length field: padding is payload.
			require.Equal(t, test.want, strings.TrimRight(string(h.payload), "\x00"))
			if h.source.Is4() {
				require.Equal(t, "10.0.0.1", h.source.String())
			}
		})
	}
}

func TestFile(t *testing.T) {
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	require.NoError(t, w.WriteFileHeader(65535, layers.LinkTypeEthernet))
	for i, destination := range []string{"10.0.0.2:80", "10.0.0.2:81", "10.0.0.2:80"} {
		data := bytesOf(t, tuple("tcp", "10.0.0.1:40000", destination))
		require.NoError(t, w.WritePacket(gopacket.CaptureInfo{CaptureLength: len(data), Length: len(data) + i*i/4}, data))
	}
	s, err := ringWith(t, &v1.Filter{BPF: "port 80"}, nil).File(&file)
	require.NoError(t, err)
	require.Equal(t, Summary{Packets: 3, Captured: 2, NotCaptured: 1, Cut: 1, Counts: []Count{
		{Captured, "r gets it", 2, 1}, {NotCaptured, `filter.bpf "port 80" does not match`, 1, 2},
	}}, s)
}

func TestFilesThatAreNone(t *testing.T) {
	for _, text := range []string{"", "abc", "not a capture", "\x0a\x0d\x0d\x0a", "\xd4\xc3\xb2\xa1\x02\x00"} {
		_, err := ringWith(t, nil, nil).File(bytes.NewBufferString(text))
		require.Error(t, err)
	}
}

func TestFilterThatDoesNotCompile(t *testing.T) {
	ring := v1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: v1.CaptureRingSpec{Filter: &v1.Filter{BPF: "x"}}}
	_, err := New(fleet.Snapshot{}, &ring, func(string) ([]bpf.RawInstruction, error) { return nil, errors.New("syntax error") })
	require.ErrorContains(t, err, "CaptureRing r: filter.bpf: syntax error")
}

// Whatever the bytes are, there is an answer.
func FuzzPacket(f *testing.F) {
	data, _ := tuple("tcp", "10.0.0.1:40000", "10.0.0.2:80").Packet()
	f.Add(data)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := ringWith(t, &v1.Filter{BPF: "x", Rules: []v1.Rule{{Match: v1.RuleMatch{SourcePort: port("1-2"), Bidirectional: true}}}, Payload: []v1.PayloadPattern{{Text: "x", Offset: 9}}}, nil)
		require.NotEmpty(t, r.Packet(data, false).Verdict)
	})
}
