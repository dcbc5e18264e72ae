// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/memory"
)

// unknownProcess stands in the table of consumers for one that is in a pid namespace which is not visible from here.
const unknownProcess = ^uint32(0)

// maxGraces is how many periods of grace a consumer gets while its process is alive.
const maxGraces = 6

// Why a consumer does not get the queue that it asks for.
var (
	errBusy  = errors.New("another consumer is attached to this queue")
	errStale = errors.New("this ring buffer was taken from its consumer; attach again")
	// errNoRingBuffer: the queue was taken back, but has no ring buffer.
	errNoRingBuffer = errors.New("there is no other ring buffer in its place until one can be made")
)

// queueParams are the parameters of a queue that its consumer gets.
type queueParams struct {
	queues    int
	snapLen   uint32
	watermark uint32
	timeout   time.Duration
}

// queue is an index of the node's tables with its maps and its consumer. Its methods may be called by several
// goroutines.
type queue struct {
	id     capture.QueueID
	index  uint32
	bytes  uint32
	folder string // of its cluster's pins
	tables *tables
	grace  time.Duration

	mu     sync.Mutex
	params queueParams
	// data is nil when the queue is closed (stats is, too), or bare: it was taken back, and another could not be made.
	data      *ebpf.Map
	dataID    uint32
	positions *positions
	stats     *ebpf.Map
	lanes     *lanes
	// consumer is the process to which the queue was handed over, 0 = none; connected tells whether it keeps its
	// connection, which it cannot while the agent is not running. attachment counts those that began.
	consumer   uint32
	connected  bool
	attachment uint64
	left       uint32 // bytes that were unread when the attachment began, unless the consumer came back to them
	expiry     *time.Timer
	graces     int // that have passed without it
}

func (q *queue) dataPin() string { return filepath.Join(q.folder, fmt.Sprintf("q%d_data", q.id.Queue)) }
func (q *queue) nextPin() string { return filepath.Join(q.folder, fmt.Sprintf("q%d_next", q.id.Queue)) }
func (q *queue) statsPin() string {
	return filepath.Join(q.folder, fmt.Sprintf("q%d_stats", q.id.Queue))
}

// create makes and pins the queue's maps.
func (q *queue) create() error {
	var err error
	if q.stats, err = newPinned(q.tables.statsSpec, q.statsPin()); err != nil {
		return err
	}
	// From here on only programs write to it, and consumers can be given a descriptor that they can map.
	if err := q.stats.Freeze(); err != nil {
		return fmt.Errorf("freeze %s: %w", q.statsPin(), err)
	}
	if q.lanes, err = mapLanes(q.stats); err != nil {
		return err
	}
	data, err := newPinned(q.dataSpec(), q.dataPin())
	if err != nil {
		return err
	}
	return q.adopt(data)
}

// occupy puts the queue's maps into the node's tables.
func (q *queue) occupy() error { return q.tables.occupy(q.index, q.data, q.stats) }

// vacate takes them out.
func (q *queue) vacate() error { return q.tables.vacate(q.index) }

// recover opens the maps of a queue that another process made. A consumer that was attached has q.grace to come back.
func (q *queue) recover() error {
	var err error
	if q.stats, err = ebpf.LoadPinnedMap(q.statsPin(), nil); err != nil {
		return fmt.Errorf("open %s: %w", q.statsPin(), err)
	}
	if q.lanes, err = mapLanes(q.stats); err != nil {
		return err
	}
	if err := q.finishReset(); err != nil {
		return err
	}
	data, err := ebpf.LoadPinnedMap(q.dataPin(), nil)
	if errors.Is(err, os.ErrNotExist) {
		return q.bare()
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", q.dataPin(), err)
	}
	if err := q.adopt(data); err != nil {
		return err
	}
	if err := q.tables.attached.Lookup(q.index, &q.consumer); err != nil {
		return fmt.Errorf("read who is attached: %w", err)
	}
	if q.consumer != 0 {
		q.expiry = time.AfterFunc(q.grace, q.expire)
	}
	return nil
}

// finishReset completes a reset that a process began and did not live to end: the new ring buffer is the queue's from
// when it is in the table.
func (q *queue) finishReset() error {
	next, err := ebpf.LoadPinnedMap(q.nextPin(), nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", q.nextPin(), err)
	}
	defer next.Close()
	nextID, err := mapID(next)
	if err != nil {
		return err
	}
	id, err := q.tables.queueAt(q.index)
	if err != nil {
		return fmt.Errorf("read entry %d of the table of queues: %w", q.index, err)
	}
	if id == nextID {
		return os.Rename(q.nextPin(), q.dataPin())
	}
	return os.Remove(q.nextPin())
}

// adopt makes data the queue's ring buffer in this process.
func (q *queue) adopt(data *ebpf.Map) error {
	id, p, err := examine(data)
	if err == nil {
		q.hold(data, id, p)
	}
	return err
}

// examine does what can fail of adopting a ring buffer; then it closes data.
func examine(data *ebpf.Map) (uint32, *positions, error) {
	id, err := mapID(data)
	var p *positions
	if err == nil {
		p, err = mapPositions(data)
	}
	if err != nil {
		data.Close()
	}
	return id, p, err
}

func (q *queue) hold(data *ebpf.Map, id uint32, p *positions) {
	q.release()
	q.data, q.dataID, q.positions = data, id, p
}

// release lets go of the ring buffer in this process.
func (q *queue) release() {
	if q.data != nil {
		q.positions.unmap()
		q.data.Close()
		q.data, q.positions = nil, nil
	}
}

// close lets go of what the process holds.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.expiry != nil {
		q.expiry.Stop()
		q.expiry = nil // for an expire that waits for the lock: the index can be another queue's by then
	}
	q.release()
	if q.lanes != nil {
		q.lanes.unmap()
		q.lanes = nil
	}
	if q.stats != nil {
		q.stats.Close()
		q.stats = nil
	}
}

func (q *queue) dataSpec() *ebpf.MapSpec {
	spec := q.tables.queueSpec.Copy()
	spec.MaxEntries = q.bytes
	spec.Name = "ringcap_queue"
	return spec
}

// attach makes process the queue's consumer, and returns the number of the attachment, which ends it. A consumer that returns
// gives its ring buffer as known, a new one 0. A new consumer finds unread packets of the last one in the queue. It learns how
// many bytes these are, and decides whether to read them.
func (q *queue) attach(process, known uint32) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if process == 0 {
		process = unknownProcess
	}
	if q.stats == nil {
		return 0, errStale
	}
	if known != 0 && known != q.dataID {
		return 0, errStale
	}
	if q.connected || q.consumer != 0 && q.consumer != process && q.mayReturn() {
		return 0, q.busy(process)
	}
	if known == 0 && !q.sound() {
		if err := q.replaceData(); err != nil {
			return 0, err
		}
	}
	// Before packets come for this consumer.
	left := uint32(0)
	if known == 0 {
		left = uint32(q.positions.unread(q.bytes))
	}
	if err := q.tables.attached.Put(q.index, process); err != nil {
		return 0, fmt.Errorf("note the consumer: %w", err)
	}
	q.left = left
	q.stopExpiry()
	q.consumer, q.connected = process, true
	q.attachment++
	return q.attachment, nil
}

// stopExpiry ends the wait for a consumer's return. Caller holds q.mu.
func (q *queue) stopExpiry() {
	if q.expiry != nil {
		q.expiry.Stop()
		q.expiry = nil
	}
}

// isStale reports whether a ring buffer is not the queue's any more. Who has it may know that without any right to the queue.
func (q *queue) isStale(known uint32) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return known != 0 && known != q.dataID
}

// resumes reports whether process is the consumer that an earlier agent let in and that still has the queue's ring buffer:
// it needs no new permission, nor anybody's answer, to go on. It is given no descriptor either.
func (q *queue) resumes(process, known uint32) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return known != 0 && known == q.dataID && process != 0 && process == q.consumer
}

// isAttached reports whether an attachment is the queue's.
func (q *queue) isAttached(attachment uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return attachment == q.attachment
}

// mayReturn reports whether the consumer of which an earlier agent left word may yet come back. Caller holds q.mu.
func (q *queue) mayReturn() bool {
	if q.consumer == unknownProcess || q.consumer > 1<<31-1 {
		return true
	}
	return !errors.Is(unix.Kill(int(q.consumer), 0), unix.ESRCH)
}

// detach ends what attach began, unless the queue was taken back since.
func (q *queue) detach(attachment uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if attachment != q.attachment {
		return nil
	}
	q.connected = false
	return q.forget()
}

// forget clears the consumer. Caller holds q.mu.
func (q *queue) forget() error {
	q.consumer = 0
	if err := q.tables.attached.Put(q.index, uint32(0)); err != nil {
		return fmt.Errorf("note that the consumer is gone: %w", err)
	}
	return nil
}

// expire gives up on a consumer that did not come back after the agent's start.
func (q *queue) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.expiry == nil || q.connected {
		return
	}
	// A consumer that is alive may be short of CPU time. Packets that come after the last grace are lost.
	if q.graces++; q.graces < maxGraces && q.mayReturn() {
		q.expiry.Reset(q.grace)
		return
	}
	q.expiry = nil
	// It fails only if the table itself is gone, which every other call will report.
	_ = q.forget()
}

func (q *queue) inUse() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.connected || q.consumer != 0 && q.mayReturn()
}

// takeBack forgets the consumer, if that is the holder, and gives the queue a new ring buffer. In this order, because a consumer that
// holds memory must not be able to keep the queue by that.
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
	if q.stats == nil {
		return from, capture.ErrNotFound
	}
	if err = q.forget(); err != nil {
		return from, err
	}
	q.stopExpiry()
	q.connected = false
	q.attachment++
	last := q.data
	if err = q.replaceData(); q.data != last {
		return from, err
	}
	if e := q.bare(); e != nil {
		return from, errors.Join(err, e)
	}
	return from, fmt.Errorf("%w: %w", errNoRingBuffer, err)
}

// bare leaves the queue without a ring buffer: nothing is written any more to who holds the last one. The next consumer, or the next
// time that it is taken back, gets it another. Caller holds q.mu.
func (q *queue) bare() error {
	q.release()
	q.dataID = 0
	if err := os.Remove(q.dataPin()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := q.forget(); err != nil {
		return err
	}
	if err := q.tables.queues.Delete(q.index); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("take a ring buffer out of the table: %w", err)
	}
	return nil
}

// busy returns the error that names the queue's holder to a process. Caller holds q.mu.
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

// holder is the consumer's process where it is known. Caller holds q.mu.
func (q *queue) holder() int {
	if q.consumer > 1<<31-1 {
		return 0
	}
	return int(q.consumer)
}

// replaceData replaces the ring buffer. The new one has nothing of the old, and nothing is written to the old one any more.
// Caller holds q.mu.
func (q *queue) replaceData() error {
	if err := os.Remove(q.nextPin()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	data, err := newPinned(q.dataSpec(), q.nextPin())
	if err != nil {
		return err
	}
	id, p, err := examine(data)
	if err != nil {
		return err
	}
	if err := q.tables.queues.Put(q.index, data); err != nil {
		p.unmap()
		data.Close()
		return fmt.Errorf("put a new ring buffer into the table: %w", err)
	}
	// It gets the packets from here on, even if it cannot be pinned. The next change or engine repairs the pin.
	q.hold(data, id, p)
	if err := os.Rename(q.nextPin(), q.dataPin()); err != nil {
		return fmt.Errorf("pin a new ring buffer: %w", err)
	}
	return nil
}

func (q *queue) setParams(p queueParams) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.params = p
}

// sound reports whether a new consumer can go on where the last stopped: that one could write to its page what it
// liked, and could freeze the map, which keeps everyone after it from mapping that page. Caller holds q.mu.
func (q *queue) sound() bool {
	if q.data == nil {
		return false
	}
	info, err := q.data.Info()
	if err != nil || info.Frozen() {
		return false
	}
	return q.positions.plausible(q.bytes)
}

// newPinned makes a map and pins it.
func newPinned(spec *ebpf.MapSpec, path string) (*ebpf.Map, error) {
	m, err := newMap(spec)
	if err != nil {
		return nil, fmt.Errorf("make a map of %d x %d bytes: %w", spec.MaxEntries, max(spec.ValueSize, 1), err)
	}
	if err := m.Pin(path); err != nil {
		m.Close()
		return nil, fmt.Errorf("pin %s: %w", path, explainRights(err))
	}
	return m, nil
}

func newMap(spec *ebpf.MapSpec) (*ebpf.Map, error) {
	if err := memory.RoomFor(uint64(spec.MaxEntries) * uint64(max(spec.ValueSize, 1))); err != nil {
		return nil, err
	}
	m, err := ebpf.NewMap(spec)
	if errors.Is(err, unix.ENOMEM) {
		return nil, fmt.Errorf("%w: %w: %w", capture.ErrNoMemory, err, memory.ErrLimit)
	}
	return m, explainRights(err)
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
