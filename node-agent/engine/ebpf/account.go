// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// queueAccount is the sum of the counters of a queue's former data maps. The last of them has the id Until. It is one
// value in the node's table of accounts, so another process can tell whether a former map is included.
type queueAccount struct {
	Before laneStats
	Until  uint32
	_      uint32
}

var accountsSpec = &ebpf.MapSpec{
	Name: "rc_accounts", Type: ebpf.Array, KeySize: 4, ValueSize: 72, MaxEntries: maxNodeQueues,
}

// settle adds a data map to the queue's account. The map is no longer in the table, and no program writes to it: a
// change of a map of maps waits for the programs that are running.
func (q *queue) settle(h *laneHeads, id uint32) error {
	if q.account.Until == id {
		return nil
	}
	next := q.account
	last := h.sum()
	next.Before.add(&last)
	next.Until = id
	if err := q.tables.accounts.Put(q.index, next); err != nil {
		return fmt.Errorf("note what a queue has counted: %w", err)
	}
	q.account = next
	return nil
}

// settleMap is settle for a map that is not mapped.
func (q *queue) settleMap(data *ebpf.Map) error {
	id, err := mapID(data)
	if err != nil || q.account.Until == id {
		return err
	}
	h, err := mapHead(data, q.shape)
	if err != nil {
		return err
	}
	defer h.unmap()
	return q.settle(h, id)
}
