// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// stuck is how long a loop may stand still before the kubelet restarts the agent. Capture continues in the meantime.
const stuck = 3 * time.Minute

// Health tells whether the agent is alive, and whether the node's data path is as desired. The zero Health is neither
// alive nor ready. Its methods may be called by several goroutines.
type Health struct {
	// alive is the time of the last sign of life, nanoseconds.
	alive   atomic.Int64
	problem atomic.Pointer[string]
}

// Beat records a sign of life: the loop has looked at the desired state, or at what is known of it.
func (h *Health) Beat() { h.alive.Store(time.Now().UnixNano()) }

// Set records what is not as asked; nil for nothing.
func (h *Health) Set(problem error) {
	text := ""
	if problem != nil {
		text = problem.Error()
	}
	h.problem.Store(&text)
}

// Healthy returns an error if the loop is stuck.
func (h *Health) Healthy() error {
	if idle := time.Since(time.Unix(0, h.alive.Load())); idle > stuck {
		return fmt.Errorf("the agent has not looked at its data path for %s", idle.Round(time.Second))
	}
	return nil
}

// Ready returns an error while the desired state is not known, and while a fault of the node keeps the data path from
// it.
func (h *Health) Ready() error {
	switch text := h.problem.Load(); {
	case text == nil:
		return errors.New("the node's data path has not been looked at yet")
	case *text != "":
		return errors.New(*text)
	}
	return nil
}
