// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"context"
	"fmt"
	"slices"

	"github.com/mdlayher/genetlink"
)

// Watch calls activity when a consumer comes or goes, or no longer decides on packets or does again, and tapGone when a tapped device does, until ctx ends or the
// module is unloaded.
func Watch(ctx context.Context, activity, tapGone func()) error {
	c, err := dial()
	if err != nil {
		return err
	}
	defer c.close()
	i := slices.IndexFunc(c.family.Groups, func(g genetlink.MulticastGroup) bool { return g.Name == groupEvents })
	if i < 0 {
		return fmt.Errorf("the module has no multicast group %q", groupEvents)
	}
	if err := c.conn.JoinGroup(c.family.Groups[i].ID); err != nil {
		return fmt.Errorf("join the module's events: %w", err)
	}
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	for {
		messages, _, err := c.conn.Receive()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("receive the module's events: %w", err)
		}
		for _, message := range messages {
			dispatch(message, activity, tapGone)
		}
	}
}

func dispatch(message genetlink.Message, activity, tapGone func()) {
	if message.Header.Command != cmdEvent {
		return
	}
	// If the event is malformed, what was read before the error counts.
	event, _ := unmarshal(message.Data, parseEventReply)
	switch event.Event {
	case eventAttached, eventDetached, eventPast, eventBack:
		activity()
	case eventTapGone:
		tapGone()
	}
}
