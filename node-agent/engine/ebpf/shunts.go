// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxShuntsGone is how many flows that a consumer has ended wait for programs that may still count in them. Until then
// no quota counts them.
const maxShuntsGone = 8192

// The least and the longest time between two looks for idle flows. In between, it is a quarter of the shortest idle
// time.
const (
	shuntLookLeast = 500 * time.Millisecond
	shuntLookMost  = 10 * time.Second
)

// shunts are the flows that the consumer of a queue has shunted. They belong to its attachment, and end with it. The
// engine makes their table when the first one is shunted, and keeps its descriptor as long as there is a table. Its
// methods may be called by several goroutines.
//
// A flow that ends is taken out of the table first. It becomes a record when no program counts in it any more, and then
// its element is free. A change of the node's table of tables waits for that.
type shunts struct {
	index   uint32
	tables  *tables
	pin     func(kind string) string
	hasRoom func(bytes uint64) error

	mu         sync.Mutex
	quota      uint32
	attachment uint64 // 0 = no consumer
	table      *shuntTable
	flows      uint32
	gone       []uint32     // elements of flows that are no records yet
	records    []shuntPlace // flows that have ended, the oldest end first
	leastIdle  uint32       // seconds; 0 = no flow ends by itself
	look       *time.Timer
	looks      uint64 // timers that there were
}

// shuntsPin and nextShuntsPin are the kinds of pins of a queue's table, and of a larger one that is to replace it.
const (
	shuntsPin     = "shunts"
	nextShuntsPin = "next_shunts"
)

// setQuota sets how many flows a consumer may shunt. Flows above it stay until they end; while it is 0, none has an
// effect.
func (s *shunts) setQuota(quota uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quota = quota
	if s.table != nil {
		s.note()
	}
}

// note tells programs, and the next process, what there is. Caller holds s.mu.
func (s *shunts) note() {
	flows := s.flows
	if s.quota == 0 {
		flows = 0
	}
	s.tables.shunting.set(s.index, flows, uint32(len(s.records)+len(s.gone)))
}

// begin begins the attachment of a consumer. One that returns keeps its flows, under another number.
func (s *shunts) begin(attachment uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attachment = attachment
}

// end ends the attachment with all of its flows.
func (s *shunts) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attachment = 0
	if s.table == nil {
		return nil
	}
	unread := uint64(s.flows) + uint64(len(s.records)+len(s.gone))
	s.tables.shunting.set(s.index, 0, 0)
	s.tables.shunting.lose(s.index, unread)
	s.forget()
	return s.discard()
}

// forget releases the table in this process. Caller holds s.mu.
func (s *shunts) forget() {
	s.stopLooking()
	if s.table != nil {
		s.table.close()
	}
	s.table, s.flows, s.gone, s.records, s.leastIdle = nil, 0, nil, nil, 0
}

// discard takes the table out of the node's table, and unpins it.
func (s *shunts) discard() error {
	return errors.Join(deleteAt(s.tables.shunts, s.index), removePin(s.pin(nextShuntsPin)), removePin(s.pin(shuntsPin)))
}

// close releases the process's resources. The flows stay shunted; another process adopts them.
func (s *shunts) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attachment = 0
	s.forget()
}

// recover adopts the flows of a queue whose consumer an earlier process admitted. Ends that the consumer had not read
// are lost, for that process had them. All flows are, if there is no consumer, or the process was ended while it made
// room for more.
func (s *shunts) recover(hasConsumer bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.tables.shunting.read(s.index)
	table, err := recoverShuntTable(s.pin(shuntsPin))
	if errors.Is(err, os.ErrNotExist) {
		s.tables.shunting.lose(s.index, uint64(state.Flows+state.Unread))
		s.tables.shunting.set(s.index, 0, 0)
		return removePin(s.pin(nextShuntsPin))
	}
	if errors.Is(err, errNotDescription) {
		s.tables.shunting.lose(s.index, uint64(state.Flows+state.Unread))
		s.tables.shunting.set(s.index, 0, 0)
		return s.discard()
	}
	if err != nil {
		return fmt.Errorf("open the table of shunted flows: %w", err)
	}
	s.adopt(table, state.Unread)
	_, err = os.Lstat(s.pin(nextShuntsPin))
	if hasConsumer && err != nil {
		return s.resume()
	}
	s.tables.shunting.set(s.index, 0, 0)
	s.tables.shunting.lose(s.index, uint64(s.flows))
	s.forget()
	return s.discard()
}

// resume lets programs use the adopted table. That process may not have done so. Caller holds s.mu.
func (s *shunts) resume() error {
	if err := s.tables.shunts.Put(s.index, s.table.m); err != nil {
		return fmt.Errorf("put a table of shunted flows into the table: %w", err)
	}
	s.note()
	s.watch(s.leastIdle)
	return nil
}

// adopt takes over a table. Caller holds s.mu.
func (s *shunts) adopt(table *shuntTable, unread uint32) {
	s.table = table
	s.tables.shunting.lose(s.index, uint64(unread))
	table.flows(func(flow uint32) {
		s.flows++
		if idle := table.places[flow].IdleS; idle != 0 && (s.leastIdle == 0 || idle < s.leastIdle) {
			s.leastIdle = idle
		}
	})
}

// ---- requests ----

// errDetached: the attachment has ended.
var errDetached = fmt.Errorf("the queue has been taken from its consumer: %w", unix.ENODEV)

// mayAsk checks that the attachment has not ended. Caller holds s.mu.
func (s *shunts) mayAsk(attachment uint64) error {
	if attachment == 0 || attachment != s.attachment {
		return errDetached
	}
	return nil
}

// add shunts flows. It returns how many it shunted before there was an error, and how many of them were shunted before.
func (s *shunts) add(attachment uint64, flows []flowRule) (done int, missed uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayAsk(attachment); err != nil {
		return 0, 0, err
	}
	if s.quota == 0 {
		return 0, 0, unix.EPERM
	}
	defer s.noteTable()
	for i := range flows {
		known, err := s.addOne(&flows[i])
		if err != nil {
			return i, missed, err
		}
		if known {
			missed++
		}
	}
	return len(flows), missed, nil
}

// noteTable is note if there is a table. Caller holds s.mu.
func (s *shunts) noteTable() {
	if s.table != nil {
		s.note()
	}
}

// addOne shunts a flow. It reports whether the flow was shunted before; then it has the new idle time.
func (s *shunts) addOne(flow *flowRule) (known bool, err error) {
	if !flow.mayShunt() {
		return false, unix.EINVAL
	}
	key, swapped := flow.key()
	fresh := shuntPlace{W: key.W, Last: monotonic(), IdleS: flow.IdleS, Swapped: uint32(flag(swapped))}
	if at := s.find(key); at != 0 {
		place := &s.table.places[at]
		place.IdleS, place.Swapped = fresh.IdleS, fresh.Swapped
		s.watch(flow.IdleS)
		return true, nil
	}
	if s.flows >= s.quota {
		return false, unix.EDQUOT
	}
	if err := s.makeRoom(); err != nil {
		return false, err
	}
	if _, err := s.table.add(fresh); err != nil {
		return false, fmt.Errorf("%w: %w", unix.ENOMEM, err)
	}
	s.flows++
	s.watch(flow.IdleS)
	return false, nil
}

// find returns the element of a flow, or 0. Caller holds s.mu.
func (s *shunts) find(key exactKey) uint32 {
	if s.table == nil {
		return 0
	}
	return s.table.find(key)
}

// remove ends flows. It returns how many it handled, and how many of them were not shunted.
func (s *shunts) remove(attachment uint64, flows []flowRule) (done int, missed uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayAsk(attachment); err != nil {
		return 0, 0, err
	}
	defer s.noteTable()
	for i := range flows {
		if !flows[i].isFlow() {
			return i, missed, unix.EINVAL
		}
		key, _ := flows[i].key()
		if at := s.find(key); at != 0 {
			s.take(at)
		} else {
			missed++
		}
	}
	if len(s.gone) >= maxShuntsGone {
		return len(flows), missed, s.settle()
	}
	return len(flows), missed, nil
}

// take takes a flow out of the table. Caller holds s.mu.
func (s *shunts) take(flow uint32) {
	s.table.remove(flow)
	s.gone = append(s.gone, flow)
	s.flows--
}

// read fills in what was counted for the flows that the states name. It returns how many it filled in, and how many of
// them are not shunted.
func (s *shunts) read(attachment uint64, states []flowState) (done int, missed uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayAsk(attachment); err != nil {
		return 0, 0, err
	}
	for i := range states {
		if !states[i].Rule.isFlow() {
			return i, missed, unix.EINVAL
		}
		key, _ := states[i].Rule.key()
		if at := s.find(key); at != 0 {
			states[i] = s.table.read(at).state(monotonic())
		} else {
			states[i].Counts = flowCounts{}
			missed++
		}
	}
	return len(states), missed, nil
}

// ended fills in flows that have ended, each once. It returns how many, and how many flows of the attachment have ended
// while too many ends were not read.
func (s *shunts) ended(attachment uint64, states []flowState) (done int, lost uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayAsk(attachment); err != nil {
		return 0, 0, err
	}
	if err := s.settle(); err != nil {
		return 0, 0, err
	}
	done = min(len(states), len(s.records))
	for i, record := range s.records[:done] {
		states[i] = record.state(monotonic())
	}
	s.records = s.records[done:]
	if len(s.records) == 0 {
		s.records = nil // its memory
	}
	s.noteTable()
	return done, s.lost(), nil
}

// lost returns how many flows of the attachment have ended without that it was told. Caller holds s.mu.
func (s *shunts) lost() uint64 {
	if s.table == nil {
		return 0
	}
	return uint64(uint32(s.tables.shunting.read(s.index).Lost) - s.table.hash().Lost)
}

// ---- the table ----

// settle makes records of the flows that are gone. Caller holds s.mu.
func (s *shunts) settle() error {
	if len(s.gone) == 0 {
		return nil
	}
	// After this, no packet counts in them.
	if err := s.tables.shunts.Put(s.index, s.table.m); err != nil {
		return fmt.Errorf("wait for programs: %w", err)
	}
	for _, flow := range s.gone {
		s.records = append(s.records, s.table.read(flow))
		s.table.release(flow)
	}
	s.gone = nil
	if surplus := len(s.records) - int(max(s.quota, 1)); surplus > 0 {
		s.records = append([]shuntPlace(nil), s.records[surplus:]...)
		s.tables.shunting.lose(s.index, uint64(surplus))
	}
	s.note()
	return nil
}

// makeRoom makes sure that the table has room for another flow. Caller holds s.mu.
func (s *shunts) makeRoom() error {
	switch {
	case s.table == nil:
		return s.makeTable()
	case !s.table.isFull():
		return nil
	case len(s.gone) > 0:
		return s.settle()
	case s.table.room() == shuntRoomMax:
		return unix.EDQUOT // never: the quota is not larger
	}
	return s.grow()
}

// newTable makes a table at a pin. The error wraps ENOMEM if the node has no memory for it.
func (s *shunts) newTable(room uint32, pin string) (*shuntTable, error) {
	if err := s.hasRoom(uint64(room) * uint64(s.tables.shuntSpec.ValueSize)); err != nil {
		return nil, fmt.Errorf("%w: %w", unix.ENOMEM, err)
	}
	if err := removePin(pin); err != nil {
		return nil, err
	}
	table, err := makeShuntTable(s.tables.shuntSpec, room, pin)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", unix.ENOMEM, err)
	}
	return table, nil
}

func (s *shunts) makeTable() error {
	table, err := s.newTable(shuntRoomMin, s.pin(shuntsPin))
	if err != nil {
		return err
	}
	table.hash().Lost = uint32(s.tables.shunting.read(s.index).Lost)
	if err := s.tables.shunts.Put(s.index, table.m); err != nil {
		table.close()
		return errors.Join(fmt.Errorf("%w: %w", unix.ENOMEM, err), s.discard())
	}
	s.table = table
	return nil
}

// grow replaces the table by a larger one. Programs count in the old one until the new one is in its place; this is
// added then.
func (s *shunts) grow() error {
	next, err := s.newTable(s.table.room()*shuntGrowth, s.pin(nextShuntsPin))
	if err != nil {
		return err
	}
	next.hash().Lost = s.table.hash().Lost
	moved, err := s.copyTo(next)
	if err == nil {
		err = s.tables.shunts.Put(s.index, next.m)
	}
	if err != nil {
		next.close()
		return errors.Join(fmt.Errorf("%w: %w", unix.ENOMEM, err), removePin(s.pin(nextShuntsPin)))
	}
	last := s.table
	s.table = next
	for from, to := range moved {
		next.credit(to, last.read(from))
	}
	last.close()
	return os.Rename(s.pin(nextShuntsPin), s.pin(shuntsPin))
}

// copyTo adds all flows to a table, with nothing counted. It returns their elements there by the ones here.
func (s *shunts) copyTo(next *shuntTable) (moved map[uint32]uint32, err error) {
	moved = make(map[uint32]uint32, s.flows)
	s.table.flows(func(flow uint32) {
		place := s.table.read(flow)
		place.Packets, place.Bytes = 0, 0
		to, e := next.add(place)
		if e != nil {
			err = e
		}
		moved[flow] = to
	})
	return moved, err
}

// ---- idle flows ----

// watch looks for idle flows from time to time, if it does not do so often enough for a flow with this idle time in
// seconds; 0 = never. Caller holds s.mu.
func (s *shunts) watch(idle uint32) {
	if idle == 0 || s.look != nil && s.leastIdle != 0 && s.leastIdle <= idle {
		return
	}
	s.leastIdle = idle
	s.stopLooking()
	this := s.looks
	s.look = time.AfterFunc(s.round(), func() { s.expire(this) })
}

// stopLooking ends what watch began. Caller holds s.mu.
func (s *shunts) stopLooking() {
	if s.look != nil {
		s.look.Stop()
	}
	s.look = nil
	s.looks++
}

// round returns the time until the next look for idle flows. Caller holds s.mu.
func (s *shunts) round() time.Duration {
	quarter := time.Duration(s.leastIdle) * time.Second / 4
	return min(max(quarter, shuntLookLeast), shuntLookMost)
}

// expire ends flows that are idle. look is the number of the timer that called it.
func (s *shunts) expire(look uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looks != look {
		return // another timer has replaced it, or the attachment has ended
	}
	now := monotonic()
	s.table.flows(func(flow uint32) {
		if s.table.read(flow).isIdle(now) {
			s.take(flow)
		}
	})
	// Without memory in the kernel, the next look settles them.
	_ = s.settle()
	s.note()
	if s.flows == 0 {
		s.stopLooking()
		s.leastIdle = 0
		return
	}
	s.look.Reset(s.round())
}

// observe returns how many flows are shunted, and how much memory their table takes.
func (s *shunts) observe() (flows uint32, bytes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table != nil {
		bytes = s.table.bytes()
	}
	return s.flows, bytes
}
