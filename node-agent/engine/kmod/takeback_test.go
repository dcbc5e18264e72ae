// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// A module from before QUEUE_REVOKE, which stays loaded while it is in use, empties free queues; it cannot take one from somebody.
func TestTakeBackFromAnOlderModule(t *testing.T) {
	var asked []uint8
	answer := int(unix.EBUSY)
	c := &client{conn: genltest.Dial(func(m genetlink.Message, _ netlink.Message) ([]genetlink.Message, error) {
		asked = append(asked, m.Header.Command)
		if m.Header.Command == cmdQueueRevoke {
			return nil, genltest.Error(int(unix.EOPNOTSUPP))
		}
		return nil, genltest.Error(answer)
	})}
	id := capture.QueueID{Cluster: "ids"}
	err := c.takeBack(id, 0)
	assert.ErrorIs(t, err, capture.ErrInUse)
	assert.ErrorIs(t, err, capture.ErrUnsupported, "it may help to wait for that consumer, and nothing else")
	assert.ErrorIs(t, c.takeBack(id, 7), capture.ErrUnsupported, "it would empty the queue of another process")
	assert.Equal(t, []uint8{cmdQueueRevoke, cmdQueueReset, cmdQueueRevoke}, asked)
	answer = 0
	assert.NoError(t, c.takeBack(id, 0))
}
