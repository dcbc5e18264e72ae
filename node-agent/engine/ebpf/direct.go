// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// directQueue is a queue whose maps a program reaches without a look-up: see bpf/direct.h.
type directQueue struct {
	queue *queue
	// id is that of the data map, 0 = the queue has none.
	id uint32
}

// directQueues returns the queues of a plain ring's cluster, if the program can reach them directly. All CPUs share a
// single lane, under a lock, which is found by a look-up.
func directQueues(c *cluster) []directQueue {
	if c.Queues > maxDirect || c.Lanes == 1 && possibleCPUs() > 1 {
		return nil
	}
	var direct []directQueue
	for _, q := range c.queues {
		direct = append(direct, directQueue{q, q.dataID()})
	}
	return direct
}

// dataID returns the id of the queue's data map, 0 if it has none.
func (q *queue) dataID() uint32 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.area == nil {
		return 0
	}
	return q.area.id()
}

// directIDs returns the ids of the data maps. If a queue gets another one, the ring gets another program with the next
// plan. Until then the packets of the queue go by the tables.
func (p ringProgram) directIDs() []uint32 {
	ids := make([]uint32, maxDirect)
	for number, d := range p.direct {
		ids[number] = d.id
	}
	return ids
}

// openQueue is an open directQueue. The zero value is none.
type openQueue struct {
	maps  queueMaps
	id    uint32
	index uint32
}

// openQueues holds the open queues by number.
type openQueues [maxDirect]openQueue

// openDirect opens the maps of the queues that the program reaches directly: all, or none if one of them got another
// data map since the program was planned, has none, or cannot be opened now: then complete is false, and the tables have
// the maps. The first queue stands in for those that the cluster does not have.
func (p ringProgram) openDirect() (all openQueues, complete bool) {
	for number, d := range p.direct {
		var err error
		if all[number], err = d.open(); all[number].id == 0 {
			all.close()
			return openQueues{}, err == nil
		}
	}
	for number := len(p.direct); number < maxDirect; number++ {
		all[number] = all[0]
	}
	return all, true
}

func (d directQueue) open() (openQueue, error) {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	if d.id == 0 || !d.queue.has(d.id) {
		return openQueue{}, nil
	}
	maps, err := d.queue.open()
	if err != nil {
		return openQueue{}, err
	}
	return openQueue{maps: maps, id: d.id, index: d.queue.index}, nil
}

func (all openQueues) close() {
	for number, q := range all {
		if number == 0 || q.id != all[0].id {
			q.maps.close()
		}
	}
}

// place puts the queues' maps and gates into the object's sections. If the program reaches no queue directly, it does
// not use them, and the gates stand in.
func (all openQueues) place(spec *ebpf.CollectionSpec, replacements map[string]*ebpf.Map, t *tables) error {
	for number, q := range all {
		data, page := q.maps[0], q.maps[1]
		if q.id == 0 {
			data, page = t.gatesMap, t.gatesMap
		}
		gate := fmt.Sprintf(".data.gate%d", number)
		for name, m := range map[string]*ebpf.Map{
			fmt.Sprintf(".data.queue%d", number): data, fmt.Sprintf(".data.page%d", number): page,
			gate: t.gatesMap,
		} {
			replacements[name] = m
			replaceSection(spec, name, m)
		}
		if err := moveLoads(spec, gate, 4*q.index); err != nil {
			return err
		}
	}
	return nil
}

// replaceSection makes a section of the object the map's value.
func replaceSection(spec *ebpf.CollectionSpec, name string, m *ebpf.Map) {
	spec.Maps[name].ValueSize, spec.Maps[name].Flags = m.ValueSize(), m.Flags()
	for variable, v := range spec.Variables {
		if v.SectionName == name {
			delete(spec.Variables, variable)
		}
	}
}

// moveLoads lets instructions that load the address of a section load that of the place in its map.
func moveLoads(spec *ebpf.CollectionSpec, section string, place uint32) error {
	for _, program := range spec.Programs {
		for i := range program.Instructions {
			if load := &program.Instructions[i]; load.Reference() == section {
				if err := load.RewriteMapOffset(place); err != nil {
					return fmt.Errorf("adapt the eBPF program: %w", err)
				}
			}
		}
	}
	return nil
}
