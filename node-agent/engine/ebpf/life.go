// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// idleTimersMap has the lives of wildcard rules, by rank plus 1; the first is the set's own, which has no idle time.
const idleTimersMap = "ring_lives"

// expired reports whether a rule of a set that began then was idle for so long that it is gone. Times are nanoseconds of the coarse
// monotonic clock.
func (l life) expired(activatedAt, now uint64) bool {
	last := l.Last
	if last == 0 {
		last = activatedAt
	}
	return l.Idle != 0 && last != 0 && int64(now-last) >= int64(l.Idle)
}

// monotonic is the programs' clock, bpf_ktime_get_coarse_ns.
func monotonic() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &now) // every kernel has it
	return uint64(now.Nano())
}

// activatedAt returns since when the set is in force, 0 when it is not or does not matter.
func (m *ringMaps) activatedAt() (uint64, error) {
	if !m.idles {
		return 0, nil
	}
	var set life
	if err := m.maps[idleTimersMap].Lookup(uint32(0), &set); err != nil {
		return 0, fmt.Errorf("read since when the rules are in force: %w", err)
	}
	return set.Last, nil
}

// activate says that the set is in force, from when on its rules may be idle; once.
func (m *ringMaps) activate() error {
	if m == nil || !m.idles {
		return nil
	}
	activatedAt, err := m.activatedAt()
	if err == nil && activatedAt == 0 {
		err = m.maps[idleTimersMap].Put(uint32(0), life{Last: monotonic()})
	}
	if err != nil {
		return fmt.Errorf("begin to look for idle rules: %w", err)
	}
	return nil
}

// expired reports whether the wildcard rule of a rank is there no more.
func (m *ringMaps) expired(rank uint32, activatedAt uint64) (bool, error) {
	if !m.expires[rank] {
		return false, nil
	}
	var l life
	if err := m.maps[idleTimersMap].Lookup(rank+1, &l); err != nil {
		return false, fmt.Errorf("read when a rule had its last packet: %w", err)
	}
	return l.expired(activatedAt, monotonic()), nil
}
