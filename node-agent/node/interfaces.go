// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Interface is a network interface of the current network namespace with its receive counters. They show packets that
// were lost before any ring could see them.
type Interface struct {
	Name  string
	Index int
	Up    bool
	// Received, ReceivedBytes, Dropped, Missed, Overrun and Errors are the kernel's rx_packets, rx_bytes, rx_dropped,
	// rx_missed_errors, rx_fifo_errors and rx_errors.
	Received, ReceivedBytes, Dropped, Missed, Overrun, Errors uint64
	// Unpairable tells why the interface cannot be in a pair of a ring in line, and what to do, in words that follow
	// its name. It is empty if it can be.
	Unpairable string
	// OtherEnd is the index of an interface of this namespace that gets what this one sends: the other end of a veth,
	// or what a macvlan is on. It is 0 for none.
	OtherEnd int
}

// Interfaces lists the interfaces of the current network namespace.
func Interfaces() ([]Interface, error) {
	links, err := Links()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	interfaces, stack := make([]Interface, 0, len(links)), newStack(links)
	for _, link := range links {
		attrs := link.Attrs()
		i := Interface{Name: attrs.Name, Index: attrs.Index, Up: attrs.RawFlags&iffUp != 0,
			Unpairable: stack.unpairable(link), OtherEnd: parentOf(link)}
		if s := attrs.Statistics; s != nil {
			i.Received, i.ReceivedBytes, i.Dropped = s.RxPackets, s.RxBytes, s.RxDropped
			i.Missed, i.Overrun, i.Errors = s.RxMissedErrors, s.RxFifoErrors, s.RxErrors
		}
		interfaces = append(interfaces, i)
	}
	return interfaces, nil
}

// Links lists the links with all their attributes.
func Links() ([]netlink.Link, error) { return Dump(netlink.LinkList) }

// Dump repeats a list if the kernel's objects changed during it, because something may be missing. If they change all
// the time, the error is netlink.ErrDumpInterrupted, and the list must not be used.
func Dump[T any](list func() ([]T, error)) ([]T, error) {
	const tries = 5
	for try := 1; ; try++ {
		found, err := list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) || try == tries {
			return found, err
		}
	}
}

const iffUp = 1 // IFF_UP of linux/if.h

// WatchInterfaces calls changed when an interface appears, is removed or renamed, or goes up or down, until ctx ends.
// It also calls changed if messages of the kernel were lost, because anything may have happened.
func WatchInterfaces(ctx context.Context, changed func()) error {
	updates, err := subscribe(ctx)
	if err != nil {
		return err
	}
	go func() {
		for {
			follow(updates, changed)
			if updates = subscribeAgain(ctx); updates == nil {
				return
			}
			changed()
		}
	}()
	return nil
}

func subscribe(ctx context.Context) (<-chan netlink.LinkUpdate, error) {
	updates := make(chan netlink.LinkUpdate)
	if err := netlink.LinkSubscribe(updates, ctx.Done()); err != nil {
		return nil, fmt.Errorf("subscribe to interface changes: %w", err)
	}
	return updates, nil
}

// subscribeAgain tries until it succeeds. It returns nil if ctx has ended.
func subscribeAgain(ctx context.Context) <-chan netlink.LinkUpdate {
	const pause = time.Second
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		updates, err := subscribe(ctx)
		if err == nil {
			return updates
		}
		slog.Warn("Changes of interfaces cannot be followed", "error", err)
	}
}

// follow reports changes until the channel is closed, which happens at the first error.
func follow(updates <-chan netlink.LinkUpdate, changed func()) {
	known := map[int32]string{}
	for update := range updates {
		index, state := update.Index, fmt.Sprint(update.Attrs().Name, update.IfInfomsg.Flags&iffUp)
		if update.Header.Type == unix.RTM_DELLINK {
			delete(known, index)
		} else if known[index] == state {
			continue
		} else {
			known[index] = state
		}
		changed()
	}
}
