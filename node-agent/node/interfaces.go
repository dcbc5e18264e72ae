// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"
)

// Interface is a network interface of the current network namespace with its receive counters, which tell of packets
// that were lost before any ring could see them.
type Interface struct {
	Name  string
	Index int
	Up    bool
	// Received, Dropped, Missed and Errors are the kernel's rx_packets, rx_dropped, rx_missed_errors and rx_errors.
	Received, Dropped, Missed, Errors uint64
}

// Interfaces lists those of the current network namespace.
func Interfaces() ([]Interface, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	interfaces := make([]Interface, 0, len(links))
	for _, link := range links {
		attrs := link.Attrs()
		i := Interface{Name: attrs.Name, Index: attrs.Index, Up: attrs.RawFlags&iffUp != 0}
		if s := attrs.Statistics; s != nil {
			i.Received, i.Dropped, i.Missed, i.Errors = s.RxPackets, s.RxDropped, s.RxMissedErrors, s.RxErrors
		}
		interfaces = append(interfaces, i)
	}
	return interfaces, nil
}

const iffUp = 1 // IFF_UP of linux/if.h

// WatchInterfaces calls changed when an interface appears, goes, is renamed, or goes up or down, until ctx ends.
func WatchInterfaces(ctx context.Context, changed func()) error {
	updates := make(chan netlink.LinkUpdate)
	if err := netlink.LinkSubscribe(updates, ctx.Done()); err != nil {
		return fmt.Errorf("subscribe to interface changes: %w", err)
	}
	go func() {
		known := map[int32]string{}
		for update := range updates {
			state := fmt.Sprint(update.Header.Type, update.Attrs().Name, update.IfInfomsg.Flags&iffUp)
			if index := update.Index; known[index] != state {
				known[index] = state
				changed()
			}
		}
	}()
	return nil
}
