// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/operator/api/sizing"
)

// unknownProcess is the entry in the table of consumers for a process in a pid namespace that is not visible from
// here.
const unknownProcess = ^uint32(0)

// maxGraces is how many grace periods a consumer gets while its process is alive.
const maxGraces = 6

// Reasons why a consumer does not get the queue that it asks for.
var (
	errBusy  = errors.New("another consumer is attached to this queue")
	errStale = errors.New("this queue's memory was taken from its consumer; attach again")
	// errNoArea: the queue was taken back, but has no memory.
	errNoArea = errors.New("there is no other memory in its place until it can be made")
)

// queueParams are the parameters that a queue's consumer gets.
type queueParams struct {
	queues    int
	snapLen   uint32
	watermark uint32
	timeout   time.Duration
}

// queue is an entry of the node's tables, with its maps and its consumer. Its methods may be called by several
// goroutines.
type queue struct {
	id     capture.QueueID
	index  uint32 // in the node's tables
	shape  queueShape
	folder string // of its cluster's pins
	// table is the table of its cluster, by queue number.
	table  *ebpf.Map
	tables *tables
	grace  time.Duration
	// hasRoom is the environment's hasRoom.
	hasRoom func(bytes uint64) error
	// shunts are its consumer's.
	shunts shunts

	mu     sync.Mutex
	params queueParams
	closed bool
	// area is nil when the queue is closed or bare. A bare queue was taken back, and another area could not be made.
	area    *area
	account queueAccount
	// consumer is the process to which the queue was handed over, 0 = none. connected tells whether it keeps its
	// connection, which it cannot while the agent is not running. attachment counts the attachments that began.
	consumer   uint32
	connected  bool
	attachment uint64
	expiry     *time.Timer
	graces     int // grace periods that have passed without the consumer
}

func (q *queue) number() uint32 { return uint32(q.id.Queue) }

// create makes and pins the queue's maps.
func (q *queue) create() (queueMaps, error) {
	m, err := q.makeMaps(q.pin)
	if err != nil {
		return m, err
	}
	if err := q.adopt(m); err != nil {
		m.close()
		return m, err
	}
	return m, nil
}

// occupy puts the queue's maps into the tables.
func (q *queue) occupy() error {
	m, err := q.open()
	if err != nil {
		return err
	}
	defer m.close()
	return q.tables.occupy(q.index, m, q.table, q.number())
}

// vacate takes the queue's maps out of the tables.
func (q *queue) vacate() error {
	var err error
	if q.table != nil {
		err = deleteAt(q.table, q.number())
	}
	return errors.Join(err, q.tables.vacate(q.index))
}

// recover opens the maps of a queue that another process made. A consumer that was attached has q.grace to come back.
func (q *queue) recover() error {
	if err := q.tables.accounts.Lookup(q.index, &q.account); err != nil {
		return fmt.Errorf("read a queue's account: %w", err)
	}
	if err := errors.Join(q.finishReset(), q.finishBare()); err != nil {
		return err
	}
	here, err := q.recoverArea()
	if err != nil {
		return err
	}
	if !here {
		return errors.Join(q.shunts.recover(false), q.bare())
	}
	return errors.Join(q.shunts.recover(q.tables.attached.get(q.index) != 0), q.recoverConsumer())
}

// recoverConsumer completes what an earlier process did not: it may have recorded a consumer, or forgotten it, without
// the gate. A version without gates leaves them as they are. The consumer's bell becomes this version's before the
// ring's programs do, which rely on what it notes.
func (q *queue) recoverConsumer() error {
	q.consumer = q.tables.attached.get(q.index)
	if q.consumer == 0 {
		q.tables.dismiss(q.index)
		return nil
	}
	if err := q.tables.resumeBell(q.index); err != nil {
		return err
	}
	q.tables.admit(q.index, q.consumer, q.area.id())
	q.expiry = time.AfterFunc(q.grace, q.expire)
	return nil
}

// recoverArea maps the queue's maps. It returns false if some or all of them are missing. Then another area is made
// for the next consumer.
func (q *queue) recoverArea() (bool, error) {
	m, err := openMaps(q.pin)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer m.close()
	if frozen(m) {
		return false, nil
	}
	return true, q.adopt(m)
}

// settlePinned adds a former data map of the queue, which is no longer in the table, to the account.
func (q *queue) settlePinned(pin string) error {
	data, err := ebpf.LoadPinnedMap(pin, nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer data.Close()
	return q.settleMap(data)
}

// finishReset completes a reset that a process began but did not finish. The next maps become the queue's as soon as
// their data map is in the table.
func (q *queue) finishReset() error {
	next, err := ebpf.LoadPinnedMap(q.nextPin(kinds[0]), nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", q.nextPin(kinds[0]), err)
	}
	defer next.Close()
	nextID, err := mapID(next)
	if err != nil {
		return err
	}
	id, err := idAt(q.table, q.number())
	if err != nil {
		return fmt.Errorf("read entry %d of a table of queues: %w", q.number(), err)
	}
	if id == nextID {
		return errors.Join(q.settlePinned(q.pin(kinds[0])), q.rename())
	}
	// Some of the other maps may already be in their tables.
	m, err := openMaps(q.pin)
	if err == nil {
		err = q.tables.setConsumer(q.index, m)
		m.close()
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, removeMaps(q.nextPin))
}

// adopt maps the queue's maps in this process.
func (q *queue) adopt(m queueMaps) error {
	a, err := newArea(m, q.shape)
	if err == nil {
		q.release()
		q.area = a
	}
	return err
}

// release unmaps the area in this process.
func (q *queue) release() {
	if q.area != nil {
		q.area.unmap()
		q.area = nil
	}
}

// close releases the process's resources.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.expiry != nil {
		q.expiry.Stop()
		q.expiry = nil // for an expire that waits for the lock: by then the index may belong to another queue
	}
	q.release()
	q.shunts.close()
	q.closed = true
}

// attach makes process the queue's consumer. It returns the number of the attachment, which ends the attachment. A
// returning consumer gives its data map as known, a new one 0. A new consumer finds unread packets of the last one in
// the queue. It learns where these end, and decides whether to read them.
func (q *queue) attach(process, known uint32) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if process == 0 {
		process = unknownProcess
	}
	if q.closed || known != 0 && !q.has(known) {
		return 0, errStale
	}
	if q.connected || q.consumer != 0 && q.consumer != process && q.mayReturn() {
		return 0, q.busy(process)
	}
	if known == 0 {
		if err := q.prepare(); err != nil {
			return 0, err
		}
	}
	q.tables.admit(q.index, process, q.area.id())
	q.stopExpiry()
	q.consumer, q.connected = process, true
	q.attachment++
	q.shunts.begin(q.attachment)
	return q.attachment, nil
}

// prepare makes the queue ready for a new consumer, before packets arrive for it. Caller holds q.mu.
func (q *queue) prepare() error {
	// A consumer that an earlier agent recorded, and that is gone, gets nothing more.
	if q.consumer != 0 {
		q.forget()
	}
	if !q.sound() {
		if err := q.renew(); err != nil {
			return err
		}
	}
	q.area.positions.begin(q.area.head)
	return q.tables.resetBell(q.index)
}

// renew gives the queue maps that the next consumer can use. Consumers trigger it, and may still hold the last maps.
// Caller holds q.mu.
func (q *queue) renew() error {
	if err := q.hasRoom(sizing.WithTables(q.shape.dataSize())); err != nil {
		return err
	}
	return q.replace()
}

// has reports whether a data map is the queue's. Caller holds q.mu.
func (q *queue) has(known uint32) bool { return q.area != nil && q.area.id() == known }

// stopExpiry stops waiting for a consumer's return. Caller holds q.mu.
func (q *queue) stopExpiry() {
	if q.expiry != nil {
		q.expiry.Stop()
		q.expiry = nil
	}
}

// isStale reports whether a data map is no longer the queue's. A holder of the map may learn this without any right
// to the queue.
func (q *queue) isStale(known uint32) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return known != 0 && !q.has(known)
}

// resumes reports whether process is the consumer that an earlier agent admitted, and still has the queue's data map.
// To continue, it needs no new permission, and no answer from anybody. It gets no descriptor either.
func (q *queue) resumes(process, known uint32) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return known != 0 && q.has(known) && process != 0 && process == q.consumer
}

// isAttached reports whether an attachment is the queue's current one.
func (q *queue) isAttached(attachment uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return attachment == q.attachment
}

// mayReturn reports whether the consumer that an earlier agent recorded may yet come back. Caller holds q.mu.
func (q *queue) mayReturn() bool {
	if q.consumer == unknownProcess || q.consumer > 1<<31-1 {
		return true
	}
	return !errors.Is(unix.Kill(int(q.consumer), 0), unix.ESRCH)
}

// detach ends the attachment that attach began, unless the queue was taken back since.
func (q *queue) detach(attachment uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if attachment != q.attachment {
		return
	}
	q.connected = false
	q.forget()
}

// forget clears the consumer. Caller holds q.mu.
func (q *queue) forget() {
	q.consumer = 0
	q.tables.dismiss(q.index)
	// What it could not remove has no effect, and gives way to the next consumer's.
	_ = q.shunts.end()
}

// expire gives up on a consumer that did not come back after the agent's start.
func (q *queue) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.expiry == nil || q.connected {
		return
	}
	// A live consumer may be short of CPU time. Packets that arrive after the last grace period are lost.
	if q.graces++; q.graces < maxGraces && q.mayReturn() {
		q.expiry.Reset(q.grace)
		return
	}
	q.expiry = nil
	q.forget()
}

func (q *queue) inUse() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.connected || q.consumer != 0 && q.mayReturn()
}

// takeBack forgets the consumer, if it is the holder, and then gives the queue other maps. This order matters: a
// consumer that holds memory must not be able to keep the queue by that.
func (q *queue) takeBack(holder capture.Holder) (from int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	from = q.holder()
	if holder.PID != 0 && holder.PID != from {
		return from, capture.ErrNotFound
	}
	if holder.Attachment != 0 && (q.consumer == 0 || holder.Attachment != q.attachment) {
		return from, capture.ErrNotFound
	}
	if q.closed {
		return from, capture.ErrNotFound
	}
	q.forget()
	q.stopExpiry()
	q.connected = false
	q.attachment++
	last := q.area
	if err = q.replace(); q.area != nil && q.area != last {
		return from, err
	}
	if e := q.bare(); e != nil {
		return from, errors.Join(err, e)
	}
	return from, fmt.Errorf("%w: %w", errNoArea, err)
}

// bare leaves the queue without maps: a holder of the last ones gets no more packets. It gets new maps with the next
// consumer, or when it is taken back again. Caller holds q.mu.
func (q *queue) bare() error {
	q.forget()
	if err := os.Rename(q.pin(kinds[0]), q.gonePin()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("note that a queue loses its maps: %w", err)
	}
	if err := q.empty(); err != nil {
		return err
	}
	if err := q.settleArea(); err != nil {
		return err
	}
	return errors.Join(removeMaps(q.pin), removePin(q.gonePin()))
}

// gonePin returns the path of a data map that the queue is losing. Another process completes this. A look into the
// table would also tell, but before Linux 6.8 each look waits for an RCU grace period.
func (q *queue) gonePin() string { return q.pin("gone") }

// finishBare completes what a process began but did not finish.
func (q *queue) finishBare() error {
	if _, err := os.Lstat(q.gonePin()); err != nil {
		return nil
	}
	return errors.Join(q.empty(), q.settlePinned(q.gonePin()), removeMaps(q.pin), removePin(q.gonePin()))
}

// empty takes the queue's data map out of the table.
func (q *queue) empty() error {
	if err := deleteAt(q.table, q.number()); err != nil {
		return fmt.Errorf("take a queue out of the table: %w", err)
	}
	return nil
}

// settleArea adds the queue's area, which is no longer in the table, to the account, and releases it. Caller holds
// q.mu.
func (q *queue) settleArea() error {
	if q.area == nil {
		return q.settlePinned(q.gonePin())
	}
	err := q.settle(q.area.head, q.area.id())
	q.release()
	return err
}

// busy returns the error that tells a process which process holds the queue. Caller holds q.mu.
func (q *queue) busy(process uint32) error {
	pid := q.holder()
	if pid == 0 {
		return errBusy
	}
	// If the holder has ended, another process has the connection.
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return fmt.Errorf("%w: it has the descriptors of process %d", errBusy, pid)
	}
	itself := ""
	if pid == int(process) {
		itself = ", this program itself"
	}
	return fmt.Errorf("%w: process %d (%s)%s", errBusy, pid, strings.TrimSpace(string(name)), itself)
}

// holder returns the consumer's process if it is known. Caller holds q.mu.
func (q *queue) holder() int {
	if q.consumer > 1<<31-1 {
		return 0
	}
	return int(q.consumer)
}

// replace gives the queue other maps. They contain nothing of the last ones, and programs no longer write to those.
// The queue has no consumer. If replace fails, the queue keeps its maps, or is bare. Caller holds q.mu.
func (q *queue) replace() error {
	if q.area == nil {
		if err := q.finishBare(); err != nil {
			return err
		}
	}
	if err := q.clearNext(); err != nil {
		return err
	}
	m, err := q.makeMaps(q.nextPin)
	if err != nil {
		return err
	}
	defer m.close()
	a, err := newArea(m, q.shape)
	if err != nil {
		return err
	}
	if err := q.exchange(m); err != nil {
		a.unmap()
		return errors.Join(err, q.bare())
	}
	err = q.settleArea()
	// The new area gets the packets from here on, even if it cannot be pinned. The next change or engine repairs the
	// pin.
	q.area = a
	return errors.Join(err, q.rename())
}

// clearNext removes the maps at the next pins. If they are the queue's current maps, it first pins them as such.
// Another process finds the maps by these pins, and takes them for the maps in the table. Caller holds q.mu.
func (q *queue) clearNext() error {
	id, err := pinnedID(q.nextPin(kinds[0]))
	if errors.Is(err, os.ErrNotExist) {
		return removeMaps(q.nextPin)
	}
	if err != nil {
		return err
	}
	if q.has(id) {
		if err := q.rename(); err != nil {
			return err
		}
	}
	return removeMaps(q.nextPin)
}

func pinnedID(path string) (uint32, error) {
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", path, err)
	}
	defer m.Close()
	return mapID(m)
}

// exchange puts other maps into the tables, the data map last.
func (q *queue) exchange(m queueMaps) error {
	err := q.tables.setConsumer(q.index, m)
	if err == nil {
		err = q.table.Put(q.number(), m[0])
	}
	if err != nil {
		return fmt.Errorf("put a queue's new maps into the tables: %w", err)
	}
	return nil
}

// sound reports whether the next consumer can use the queue's maps. The last consumer may have frozen the maps that
// it can write to while no agent ran.
func (q *queue) sound() bool {
	if q.area == nil {
		return false
	}
	m, err := q.open()
	if err != nil {
		return false
	}
	defer m.close()
	return !frozen(m)
}

func frozen(m queueMaps) bool {
	for _, one := range m[1:] {
		if info, err := one.Info(); err != nil || info.Frozen() {
			return true
		}
	}
	return false
}

// setParams sets the parameters that the next consumer gets.
func (q *queue) setParams(p queueParams) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.params = p
}

func mapID(m *ebpf.Map) (uint32, error) {
	info, err := m.Info()
	if err != nil {
		return 0, fmt.Errorf("read a map's id: %w", err)
	}
	id, ok := info.ID()
	if !ok {
		return 0, errors.New("this kernel does not report the ids of maps")
	}
	return uint32(id), nil
}
