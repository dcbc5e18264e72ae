// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// tables are the maps that all rings' programs share. A queue's index in them is 0 to maxNodeQueues - 1.
type tables struct {
	consumers     *ebpf.Map  // index -> the consumer's page
	doorbells     *ebpf.Map  // index -> the ring buffer that wakes it
	bells         *ebpf.Map  // index -> when it is woken
	attached      *wordTable // index -> the consumer's process, 0 = none
	attachedMap   *ebpf.Map
	gates         *wordTable // index -> the data map that programs may reach directly, 0 = none: see bpf/direct.h
	gatesMap      *ebpf.Map
	unattended    *unattendedTable // index -> packets while nobody was attached, by CPU
	unattendedMap *ebpf.Map
	shunting      *shuntingTable // index -> what there is of shunted flows: see bpf/shunt.h
	shuntingMap   *ebpf.Map
	shunts        *ebpf.Map // index -> the table of the consumer's shunted flows
	roundRobin    *ebpf.Map // a cluster's first index -> number of the next packet
	balance       *ebpf.Map // a cluster's first index -> its account by CPU
	clock         *ebpf.Map // nanoseconds that TAI is ahead of UTC
	scratch       *ebpf.Map // by CPU: where a packet is looked at
	// No program uses these. occupied marks indexes that may be in use (1). It is a plain array: before Linux 6.8
	// each look at a map of maps waits for an RCU grace period, and there are thousands of indexes. accounts holds
	// the counters of former maps.
	occupied *ebpf.Map
	accounts *ebpf.Map

	// consumerSpec, doorbellSpec and shuntSpec describe the entries of the tables of maps.
	consumerSpec, doorbellSpec, shuntSpec *ebpf.MapSpec
	// bell is the program that makes a queue's bell ready for a new consumer.
	bell *ebpf.Program
	// none stands in for tables that a ring's program does not use.
	none *ebpf.Map
}

// scratchMap is the map in which programs assemble a packet.
const scratchMap = "rc_scratch"

var occupiedSpec = &ebpf.MapSpec{
	Name: "rc_occupied", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: maxNodeQueues,
}

var gatesSpec = &ebpf.MapSpec{
	Name: "rc_gates", Type: ebpf.Array, KeySize: 4, ValueSize: 4 * maxNodeQueues, MaxEntries: 1, Flags: mmapable,
}

// openTables opens the pinned tables in folder, or makes and pins them.
func openTables(folder string, spec *ebpf.CollectionSpec) (*tables, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make %s in the bpffs: %w", folder, explainRights(err))
	}
	t := &tables{
		consumerSpec: spec.Maps["rc_consumers"].InnerMap, doorbellSpec: spec.Maps["rc_doorbells"].InnerMap,
		shuntSpec: spec.Maps["rc_shunts"].InnerMap,
	}
	t.consumerSpec.Name, t.doorbellSpec.Name, t.shuntSpec.Name = "ringcap_consumer", "ringcap_bell", "ringcap_shunts"
	err := t.open(folder, spec)
	if err == nil {
		t.attached, err = mapWords(t.attachedMap)
	}
	if err == nil {
		t.gates, err = mapWords(t.gatesMap)
	}
	if err == nil {
		t.unattended, err = mapUnattended(t.unattendedMap)
	}
	if err == nil {
		t.shunting, err = mapShunting(t.shuntingMap)
	}
	if err == nil {
		t.bell, err = loadBell(spec, t.bells, t.consumers, t.doorbells)
	}
	if err == nil {
		t.none, err = newMap(spec.Maps[tableMap(0)])
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *tables) open(folder string, spec *ebpf.CollectionSpec) error {
	for name, field := range t.fields() {
		m, err := openTable(filepath.Join(folder, tablePin(name)), spec.Maps[name])
		if err != nil {
			return err
		}
		*field = m
	}
	for own, field := range t.ownFields() {
		m, err := openTable(filepath.Join(folder, own.Name[len("rc_"):]), own)
		if err != nil {
			return err
		}
		*field = m
	}
	return nil
}

func openTable(path string, spec *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err == nil {
		err := spec.Compatible(m)
		if err != nil && spec.Name == scratchMap {
			m.Close()
			return renewTable(path, spec)
		}
		if err != nil {
			m.Close()
			return nil, fmt.Errorf("%s was made by another version of the agent: %w: stop all captures with that one first",
				path, err)
		}
		return m, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open %s: %w", path, explainRights(err))
	}
	return makeTable(path, spec)
}

// renewTable replaces a table of another version. Its entries are valid for one packet only. Loaded programs keep the
// old table.
func renewTable(path string, spec *ebpf.MapSpec) (*ebpf.Map, error) {
	if err := os.Remove(path); err != nil {
		return nil, fmt.Errorf("unpin %s, which another version of the agent made: %w", path, err)
	}
	return makeTable(path, spec)
}

func makeTable(path string, spec *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, fmt.Errorf("make the map %s: %w", spec.Name, explainRights(err))
	}
	if err := m.Pin(path); err != nil {
		m.Close()
		return nil, fmt.Errorf("pin %s: %w", path, explainRights(err))
	}
	return m, nil
}

func (t *tables) fields() map[string]**ebpf.Map {
	return map[string]**ebpf.Map{
		"rc_consumers": &t.consumers, "rc_doorbells": &t.doorbells, "rc_bells": &t.bells, attachedMap: &t.attachedMap,
		unattendedMap: &t.unattendedMap, shuntingMap: &t.shuntingMap, "rc_shunts": &t.shunts,
		"rc_round_robin": &t.roundRobin, "rc_balance": &t.balance, clockMap: &t.clock, scratchMap: &t.scratch,
	}
}

// tablePin returns a table's name in the bpffs, which does not allow dots.
func tablePin(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "rc_"), ".data.")
}

func (t *tables) ownFields() map[*ebpf.MapSpec]**ebpf.Map {
	return map[*ebpf.MapSpec]**ebpf.Map{occupiedSpec: &t.occupied, accountsSpec: &t.accounts, gatesSpec: &t.gatesMap}
}

// byName returns the tables by their names in the object.
func (t *tables) byName() map[string]*ebpf.Map {
	maps := map[string]*ebpf.Map{}
	for name, field := range t.fields() {
		maps[name] = *field
	}
	return maps
}

func (t *tables) close() {
	for _, field := range t.fields() {
		if *field != nil {
			(*field).Close()
		}
	}
	for _, field := range t.ownFields() {
		if *field != nil {
			(*field).Close()
		}
	}
	if t.attached != nil {
		t.attached.unmap()
	}
	if t.gates != nil {
		t.gates.unmap()
	}
	if t.unattended != nil {
		t.unattended.unmap()
	}
	if t.shunting != nil {
		t.shunting.unmap()
	}
	if t.bell != nil {
		t.bell.Close()
	}
	if t.none != nil {
		t.none.Close()
	}
}

// occupy puts a queue's maps at an index, with no consumer attached. It puts the data map into its cluster's table,
// by number.
func (t *tables) occupy(index uint32, m queueMaps, table *ebpf.Map, number uint32) error {
	if err := t.occupied.Put(index, uint32(1)); err != nil {
		return err
	}
	for _, set := range []struct {
		table *ebpf.Map
		value any
	}{{t.roundRobin, uint32(0)}, {t.balance, make([]balanceAccount, possibleCPUs())}, {t.accounts, queueAccount{}}} {
		if err := set.table.Put(index, set.value); err != nil {
			return err
		}
	}
	t.dismiss(index)
	t.unattended.reset(index)
	t.shunting.reset(index)
	if err := errors.Join(t.resetBell(index), t.setConsumer(index, m)); err != nil {
		return err
	}
	return table.Put(number, m[0])
}

// admit lets programs put packets into the queue at an index for a process, directly into the data map with the id. The
// gate is only open while a process is recorded, even if the agent is killed in between: packets behind an open gate
// count as delivered.
func (t *tables) admit(index, process, id uint32) {
	t.attached.set(index, process)
	t.gates.set(index, id)
}

// dismiss ends admit.
func (t *tables) dismiss(index uint32) {
	t.gates.set(index, 0)
	t.attached.set(index, 0)
}

// setConsumer sets, at an index, the map that a consumer can write to, and the doorbell that wakes it.
func (t *tables) setConsumer(index uint32, m queueMaps) error {
	if err := t.consumers.Put(index, m[1]); err != nil {
		return err
	}
	return t.doorbells.Put(index, m[2])
}

// vacate clears an index.
func (t *tables) vacate(index uint32) error {
	t.dismiss(index)
	var err error
	for _, table := range []*ebpf.Map{t.consumers, t.doorbells, t.shunts} {
		err = errors.Join(err, deleteAt(table, index))
	}
	// The timer is removed with the value.
	err = errors.Join(err, t.bells.Put(index, make([]byte, t.bells.ValueSize())))
	if err != nil {
		return err
	}
	return t.occupied.Put(index, uint32(0))
}

// vacateAllBut clears the indexes for which keep returns false: remains of a process that ended during a change.
func (t *tables) vacateAllBut(keep func(index uint32) bool) error {
	for index := range uint32(maxNodeQueues) {
		if keep(index) {
			continue
		}
		var occupied uint32
		err := t.occupied.Lookup(index, &occupied)
		if err == nil && occupied == 0 {
			continue
		}
		if err = errors.Join(err, t.vacate(index)); err != nil {
			return fmt.Errorf("empty entry %d of the table of queues: %w", index, err)
		}
	}
	return nil
}

// setClock gives the programs the offset of the TAI clock, which they read, from UTC. TAI follows every step of the
// wall clock by itself. The offset changes with leap seconds, and when a time server first sets it.
func (t *tables) setClock() error {
	var timex unix.Timex
	if _, err := unix.Adjtimex(&timex); err != nil {
		return fmt.Errorf("read the offset of TAI: %w", err)
	}
	const nanoseconds = 1_000_000_000
	if err := t.clock.Put(uint32(0), uint64(int64(timex.Tai)*nanoseconds)); err != nil {
		return fmt.Errorf("set the programs' clock: %w", err)
	}
	return nil
}
