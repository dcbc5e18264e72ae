// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// idleTimersMap holds the idle timers of wildcard rules, by rank plus 1. The first is the set's own, which has no
// idle time.
const idleTimersMap = "ring_lives"

// expired reports whether a rule was idle for its idle time. activatedAt is the time at which its set became active.
// Times are nanoseconds of the coarse monotonic clock.
func (l life) expired(activatedAt, now uint64) bool {
	last := l.Last
	if last == 0 {
		last = activatedAt
	}
	return l.Idle != 0 && last != 0 && int64(now-last) >= int64(l.Idle)
}

// monotonic returns the time of the programs' clock, bpf_ktime_get_coarse_ns.
func monotonic() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &now) // every kernel has it
	return uint64(now.Nano())
}

// activatedAt returns the time at which the set became active. It is 0 if the set is not active or no rule expires.
func (m *ringMaps) activatedAt() (uint64, error) {
	if !m.idles {
		return 0, nil
	}
	var set life
	if err := m.maps[idleTimersMap].Lookup(uint32(0), &set); err != nil {
		return 0, fmt.Errorf("read when the rules became active: %w", err)
	}
	return set.Last, nil
}

// activate starts the idle timers of the set. A second call changes nothing.
func (m *ringMaps) activate() error {
	if m == nil || !m.idles {
		return nil
	}
	activatedAt, err := m.activatedAt()
	if err == nil && activatedAt == 0 {
		err = m.maps[idleTimersMap].Put(uint32(0), life{Last: monotonic()})
	}
	if err != nil {
		return fmt.Errorf("start the rules' idle timers: %w", err)
	}
	return nil
}

// expired reports whether the wildcard rule of a rank was idle for its idle time.
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
