// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Packet is a packet that a node captured.
type Packet struct {
	Time time.Time
	// Interface is the index of the interface among those that the stream announced.
	Interface int
	// Length on the wire, bytes.
	Length   int
	Outgoing bool
	Data     []byte
}

// Account is rcstream's final account.
type Account struct {
	// Read is the number of packets read from the queue, before the filter. The others were lost since the queue was opened.
	Read, Full, Unattended, NoMemory int64
}

// Lost returns the number of packets that the queue lost.
func (a Account) Lost() int64 { return a.Full + a.Unattended + a.NoMemory }

// iface is an interface as rcstream announces it.
type iface struct {
	// name of the interface or, as NAMESPACE/NAME, of the pod on its other side; the ifindex as text if own is empty.
	name string
	// own name of the interface.
	own string
}

// stream parses rcstream's output: pcapng, in little endian and with nanoseconds. It trusts no length: the other end may be
// compromised.
type stream struct {
	from *bufio.Reader
	// interfaces announced so far.
	interfaces []iface
	account    Account
}

// Blocks and options of pcapng that rcstream writes.
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockStatistics = 5
	blockPacket     = 6

	optionComment   = 1
	optionName      = 2
	optionAbout     = 3
	optionFlags     = 2
	flagsOutgoing   = 2
	littleEndian    = 0x1a2b3c4d
	frame           = 12
	maxBlock        = 1 << 20
	maxInterfaces   = 1 << 16
	packetHeader    = 20
	interfaceHeader = 8
)

var errDamaged = errors.New("invalid data from the node")

// openStream reads the first block, which arrives as soon as the queue is attached.
func openStream(from io.Reader) (*stream, error) {
	s := &stream{from: bufio.NewReaderSize(from, 1<<17)}
	kind, body, err := s.block()
	if err != nil {
		return nil, err
	}
	if kind != blockSection || len(body) < 16 || binary.LittleEndian.Uint32(body) != littleEndian {
		return nil, fmt.Errorf("%w: no pcapng", errDamaged)
	}
	return s, nil
}

// next returns the next packet; io.EOF after the account, and io.ErrUnexpectedEOF if there was none.
func (s *stream) next() (Packet, error) {
	for {
		kind, body, err := s.block()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return Packet{}, err
		}
		switch kind {
		case blockInterface:
			err = s.announce(body)
		case blockPacket:
			return s.packet(body)
		case blockStatistics:
			var last bool
			if last, err = s.statistics(body); last {
				return Packet{}, io.EOF
			}
		default:
			err = fmt.Errorf("%w: a block of type %#x", errDamaged, kind)
		}
		if err != nil {
			return Packet{}, err
		}
	}
}

// block reads a block's type and what is between its lengths.
func (s *stream) block() (uint32, []byte, error) {
	var header [8]byte
	if _, err := io.ReadFull(s.from, header[:]); err != nil {
		return 0, nil, err
	}
	kind, size := binary.LittleEndian.Uint32(header[:]), binary.LittleEndian.Uint32(header[4:])
	if size < frame || size > maxBlock || size%4 != 0 {
		return 0, nil, fmt.Errorf("%w: a block of %d bytes", errDamaged, size)
	}
	body := make([]byte, size-8)
	if _, err := io.ReadFull(s.from, body); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	end := len(body) - 4
	if binary.LittleEndian.Uint32(body[end:]) != size {
		return 0, nil, fmt.Errorf("%w: a block's lengths differ", errDamaged)
	}
	return kind, body[:end], nil
}

// option finds an option's value.
func option(options []byte, code uint16) ([]byte, bool) {
	for len(options) >= 4 {
		is, size := binary.LittleEndian.Uint16(options), int(binary.LittleEndian.Uint16(options[2:]))
		options = options[4:]
		if is == 0 || size > len(options) {
			return nil, false
		}
		if is == code {
			return options[:size], true
		}
		options = options[min((size+3)&^3, len(options)):]
	}
	return nil, false
}

func (s *stream) announce(body []byte) error {
	if len(body) < interfaceHeader || len(s.interfaces) == maxInterfaces {
		return fmt.Errorf("%w: an interface too many or too short", errDamaged)
	}
	name, _ := option(body[interfaceHeader:], optionName)
	own, _ := option(body[interfaceHeader:], optionAbout)
	s.interfaces = append(s.interfaces, iface{string(name), string(own)})
	return nil
}

func (s *stream) packet(body []byte) (Packet, error) {
	if len(body) < packetHeader {
		return Packet{}, fmt.Errorf("%w: a packet of %d bytes", errDamaged, len(body))
	}
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(body[at:]) }
	p := Packet{
		Interface: int(u32(0)), Time: time.Unix(0, int64(uint64(u32(4))<<32|uint64(u32(8)))), Length: int(u32(16)),
	}
	captured := int(u32(12))
	if p.Interface >= len(s.interfaces) || captured > len(body)-packetHeader || captured > p.Length {
		return Packet{}, fmt.Errorf("%w: a packet of interface %d with %d bytes", errDamaged, p.Interface, captured)
	}
	p.Data = body[packetHeader : packetHeader+captured]
	rest := body[min(packetHeader+(captured+3)&^3, len(body)):]
	if flags, ok := option(rest, optionFlags); ok && len(flags) == 4 {
		p.Outgoing = binary.LittleEndian.Uint32(flags)&3 == flagsOutgoing
	}
	return p, nil
}

// statistics parses the account, which comes last, with the statistics of interface 0.
func (s *stream) statistics(body []byte) (last bool, err error) {
	if len(body) < frame {
		return false, fmt.Errorf("%w: statistics of %d bytes", errDamaged, len(body))
	}
	comment, ok := option(body[frame:], optionComment)
	if !ok {
		return false, nil
	}
	a := &s.account
	if _, err := fmt.Sscanf(string(comment), "read %d full %d unattended %d nomem %d", &a.Read, &a.Full, &a.Unattended, &a.NoMemory); err != nil {
		return false, fmt.Errorf("%w: the account %q: %w", errDamaged, comment, err)
	}
	return true, nil
}
