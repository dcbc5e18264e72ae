// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// livesMap has the lives of wildcard rules, by rank plus 1; the first is the set's own, which has no idle time.
const livesMap = "ring_lives"

// isOver reports whether a rule of a set that began then was idle for so long that it is gone. Times are nanoseconds of the coarse
// monotonic clock.
func (l life) isOver(began, now uint64) bool {
	last := l.Last
	if last == 0 {
		last = began
	}
	return l.Idle != 0 && last != 0 && int64(now-last) >= int64(l.Idle)
}

// monotonic is the programs' clock, bpf_ktime_get_coarse_ns.
func monotonic() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &now) // every kernel has it
	return uint64(now.Nano())
}

// began returns since when the set is in force, 0 when it is not or does not matter.
func (m *ringMaps) began() (uint64, error) {
	if !m.idles {
		return 0, nil
	}
	var set life
	if err := m.maps[livesMap].Lookup(uint32(0), &set); err != nil {
		return 0, fmt.Errorf("read since when the rules are in force: %w", err)
	}
	return set.Last, nil
}

// begin says that the set is in force, from when on its rules may be idle; once.
func (m *ringMaps) begin() error {
	if m == nil || !m.idles {
		return nil
	}
	began, err := m.began()
	if err == nil && began == 0 {
		err = m.maps[livesMap].Put(uint32(0), life{Last: monotonic()})
	}
	if err != nil {
		return fmt.Errorf("begin to look for idle rules: %w", err)
	}
	return nil
}

// isOver reports whether the wildcard rule of a rank is there no more.
func (m *ringMaps) isOver(rank uint32, began uint64) (bool, error) {
	if !m.goes[rank] {
		return false, nil
	}
	var l life
	if err := m.maps[livesMap].Lookup(rank+1, &l); err != nil {
		return false, fmt.Errorf("read when a rule had its last packet: %w", err)
	}
	return l.isOver(began, monotonic()), nil
}
