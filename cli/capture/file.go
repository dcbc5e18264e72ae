// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// file writes packets of many nodes as one pcapng. Its interfaces are named NODE/INTERFACE or NODE/NAMESPACE/POD. It is not
// safe for concurrent use.
type file struct {
	to     io.Writer
	plan   Plan
	writer *pcapgo.NgWriter
	// ids in the file, by node and by index of the interface in the node's stream.
	ids [][]int
	// written packets, by id.
	written []uint64
	owner   []int
}

func newFile(to io.Writer, plan Plan) *file {
	return &file{to: to, plan: plan, ids: make([][]int, len(plan.Nodes))}
}

// describe returns an interface of a node. Agents of earlier versions send no name if the ring has several.
func (f *file) describe(node int, i iface) pcapgo.NgInterface {
	n := f.plan.Nodes[node]
	name, own := i.name, i.own
	switch {
	case own != "":
	case len(n.Interfaces) == 1:
		name, own = n.Interfaces[0], n.Interfaces[0]
	default:
		name, own = "if"+i.name, "one of "+strings.Join(n.Interfaces, ", ")
	}
	return pcapgo.NgInterface{
		Name: n.Name + "/" + name, Description: fmt.Sprintf("%s of node %s, ring %s", own, n.Name, f.plan.Ring),
		Filter: f.plan.Filter, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9,
	}
}

// announce adds to the file the new interfaces of a node's stream.
func (f *file) announce(node int, interfaces []iface) error {
	for _, i := range interfaces[len(f.ids[node]):] {
		id, err := f.add(f.describe(node, i))
		if err != nil {
			return err
		}
		f.ids[node] = append(f.ids[node], id)
		f.written, f.owner = append(f.written, 0), append(f.owner, node)
	}
	return nil
}

func (f *file) add(i pcapgo.NgInterface) (int, error) {
	if f.writer != nil {
		return f.writer.AddInterface(i)
	}
	var err error
	f.writer, err = pcapgo.NewNgWriterInterface(f.to, i, pcapgo.NgWriterOptions{
		SectionInfo: pcapgo.NgSectionInfo{Application: "ringcap capture", Comment: "ring " + f.plan.Ring},
	})
	return 0, err
}

func (f *file) write(node int, p Packet) error {
	id := f.ids[node][p.Interface]
	f.written[id]++
	flags := &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}
	if p.Outgoing {
		flags.Direction = pcapgo.NgEpbFlagDirectionOutbound
	}
	info := gopacket.CaptureInfo{Timestamp: p.Time, CaptureLength: len(p.Data), Length: p.Length, InterfaceIndex: id}
	return f.writer.WritePacketWithOptions(info, p.Data, pcapgo.NgPacketOptions{Flags: flags})
}

// flush flushes what was written.
func (f *file) flush() error {
	if f.writer == nil {
		return nil
	}
	return f.writer.Flush()
}

// finish writes the counters of each interface; a node's loss is in those of its first interface.
func (f *file) finish(results []Result, now time.Time) error {
	for node := range f.plan.Nodes {
		if len(f.ids[node]) > 0 {
			continue
		}
		// A node without packets must be in the file, too.
		if err := f.announce(node, []iface{{name: "none"}}); err != nil {
			return err
		}
	}
	for id, node := range f.owner {
		s := pcapgo.NgInterfaceStatistics{LastUpdate: now, PacketsReceived: f.written[id]}
		if f.ids[node][0] == id {
			s.PacketsDropped = uint64(results[node].Account.Lost())
		}
		if err := f.writer.WriteInterfaceStats(id, s); err != nil {
			return err
		}
	}
	return f.flush()
}
