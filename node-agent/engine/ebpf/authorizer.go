// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// Authorizer decides which process gets which queue. Its methods may be called by several goroutines.
type Authorizer interface {
	// Authorize returns nil, or an error with the reason, in words for the user of that process. The process is the
	// one that connected (SO_PEERCRED). pid is its number in this process's pid namespace, 0 if it is not visible
	// there.
	Authorize(ctx context.Context, pid int, queue capture.QueueID) error
}

// AuthorizerFunc makes an Authorizer of a function.
type AuthorizerFunc func(ctx context.Context, pid int, queue capture.QueueID) error

// Authorize calls the function.
func (f AuthorizerFunc) Authorize(ctx context.Context, pid int, queue capture.QueueID) error {
	return f(ctx, pid, queue)
}

// localUsers holds the users that get any queue on a machine without Kubernetes.
type localUsers map[uint32]bool

func newLocalUsers(numbers []uint32) localUsers {
	users := localUsers{0: true, uint32(os.Geteuid()): true}
	for _, number := range numbers {
		users[number] = true
	}
	return users
}

func (users localUsers) check(peer *unix.Ucred) error {
	if !users[peer.Uid] {
		return fmt.Errorf("user %d may not consume queues on this machine", peer.Uid)
	}
	return nil
}
