// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// A module from before QUEUE_REVOKE, which stays loaded while it is in use, empties free queues; it cannot take one
// from somebody.
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
	err := c.takeBack(id, capture.Holder{})
	assert.ErrorIs(t, err, capture.ErrInUse)
	assert.ErrorIs(t, err, capture.ErrUnsupported, "it may help to wait for that consumer, and nothing else")
	assert.ErrorIs(t, c.takeBack(id, capture.Holder{PID: 7}), capture.ErrUnsupported, "it would empty the queue of another process")
	assert.Equal(t, []uint8{cmdQueueRevoke, cmdQueueReset, cmdQueueRevoke}, asked)
	answer = 0
	assert.NoError(t, c.takeBack(id, capture.Holder{}))
}

// A queue is taken from the consumer of that attachment; its process may have another number. A queue is also taken
// when there is no memory for the next ring.
func TestTakeBackNamesTheAttachment(t *testing.T) {
	var revoked []byte
	attached := uint64(5)
	var silent bool
	c := &client{conn: genltest.Dial(func(m genetlink.Message, _ netlink.Message) ([]genetlink.Message, error) {
		if m.Header.Command == cmdQueueRevoke {
			revoked = m.Data
			return nil, genltest.Error(int(unix.ENOMEM))
		}
		if silent {
			return nil, genltest.Error(int(unix.ENOMEM))
		}
		e := netlink.NewAttributeEncoder()
		e.Uint32(attrQueue, 0)
		e.Uint32(attrAttached, 1)
		e.Uint32(attrAttachedPID, 7)
		e.Uint64(attrAttachment, attached)
		data, err := e.Encode()
		return []genetlink.Message{{Data: data}}, err
	})}
	id := capture.QueueID{Cluster: "ids"}
	from, err := c.holder(id)
	require.NoError(t, err)
	assert.Equal(t, capture.Holder{PID: 7, Attachment: 5}, from)
	assert.Error(t, c.takeBack(id, from), "it still has it")
	attached = 6
	assert.NoError(t, c.takeBack(id, from))
	want, err := encodeQueue(id, capture.Holder{PID: 7, Attachment: 5})
	require.NoError(t, err)
	assert.Equal(t, want, revoked)
	assert.Error(t, c.takeBack(id, capture.Holder{}), "for the next there is none")
	silent = true
	assert.ErrorIs(t, c.takeBack(id, from), capture.ErrNoMemory, "it is not known who has it")
}
