// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// handoverSocket is RINGCAP_HANDOVER_SOCKET of kmod/include/uapi/linux/ringcap.h.
const handoverSocket = "handover"

// versions are the versions of the interface that one side speaks.
type versions struct{ oldest, newest uint32 }

// supportedVersions are the versions that this agent speaks.
var supportedVersions = versions{protocolABIMin, protocolABI}

// with returns the newest version that both sides speak. The error tells which side must be updated, and wraps
// EPROTO.
func (v versions) with(consumer versions) (uint32, error) {
	newest, oldest := min(v.newest, consumer.newest), max(v.oldest, consumer.oldest)
	if newest >= oldest {
		return newest, nil
	}
	todo := "upgrade ringcap on this node"
	if consumer.newest < v.oldest {
		todo = "update libringcap, or libpcap, in the consumer's image"
	}
	return 0, fmt.Errorf("%w: versions of the interface: consumer %d to %d, agent %d to %d: %s", unix.EPROTO,
		consumer.oldest, consumer.newest, v.oldest, v.newest, todo)
}

// versions returns the versions that the consumer speaks. Without ABIMin it speaks only one.
func (r handoverRequest) versions() versions {
	if r.ABIMin == 0 {
		return versions{r.ABI, r.ABI}
	}
	return versions{r.ABIMin, r.ABI}
}

var requestSize = binary.Size(handoverRequest{})

// parseRequest reads a request. For anything else the error wraps EPROTO.
func parseRequest(message []byte) (handoverRequest, error) {
	var request handoverRequest
	if len(message) != requestSize {
		return request, fmt.Errorf("%w: a request has %d bytes, this one %d", unix.EPROTO, requestSize, len(message))
	}
	if _, err := binary.Decode(message, binary.NativeEndian, &request); err != nil {
		return request, fmt.Errorf("%w: %w", unix.EPROTO, err)
	}
	if request.Magic != protocolMagic {
		return request, fmt.Errorf("%w: this is not a ringcap request", unix.EPROTO)
	}
	return request, nil
}

func newReply(id capture.QueueID, mine versions) handoverReply {
	reply := handoverReply{Magic: protocolMagic, ABI: mine.newest, Queue: uint32(id.Queue)}
	copy(reply.Name[:maxNameLen], id.Cluster)
	return reply
}

// refuse makes the reply a refusal with the error's reason.
func (r *handoverReply) refuse(err error) {
	number := unix.EIO
	if !errors.As(err, &number) {
		switch {
		case errors.Is(err, errBusy):
			number = unix.EBUSY
		case errors.Is(err, errStale):
			number = unix.ESTALE
		}
	}
	r.Error = uint32(number)
	copy(r.Reason[:len(r.Reason)-1], err.Error())
}

func (r *handoverReply) bytes() []byte {
	var message bytes.Buffer
	// Fails only for values without a fixed size.
	_ = binary.Write(&message, binary.NativeEndian, r)
	return message.Bytes()
}
