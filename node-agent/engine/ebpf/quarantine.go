// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/ringcap/ringcap/node-agent/node"
)

// setAside keeps an unreadable description for analysis. It removes the object, and the next plan makes it again.
// Other objects stay as they are.
func (e *Engine) setAside(folder string, why error) error {
	kept := filepath.Join(e.env.pins.root, "unreadable", filepath.Base(filepath.Dir(folder))+"_"+filepath.Base(folder))
	e.log.Error("the state that an earlier agent left cannot be read: it is removed and made again from the plan; its consumers must attach again",
		"folder", folder, "kept", kept, "error", why)
	if err := errors.Join(os.MkdirAll(filepath.Dir(kept), 0o700), os.RemoveAll(kept), os.Rename(filepath.Join(folder, "description"), kept)); err != nil {
		return fmt.Errorf("keep an unreadable description: %w", err)
	}
	return nil
}

// quarantineCluster gives up a cluster. Its indexes stay reserved until no program feeds them.
func (e *Engine) quarantineCluster(folder string, why error) error {
	if err := e.setAside(folder, why); err != nil {
		return err
	}
	called := filepath.Base(folder)
	end := max(strings.LastIndexByte(called, '_'), 0)
	base, err := strconv.ParseUint(strings.TrimPrefix(called[end:], "_"), 10, 32)
	table, e2 := ebpf.LoadPinnedMap(filepath.Join(folder, "queues"), nil)
	if err = errors.Join(err, e2); err != nil {
		return removePins(folder)
	}
	queues := table.MaxEntries()
	table.Close()
	if queues > maxQueues || base+uint64(queues) > maxNodeQueues {
		return removePins(folder)
	}
	c := &cluster{Name: strings.ReplaceAll(called[:end], "_", "."), Queues: int(queues), Base: uint32(base), folder: folder, tables: e.env.tables, unreadable: true}
	for i := range c.Queues {
		c.queues = append(c.queues, e.env.newQueue(c, i))
	}
	e.retired = append(e.retired, c)
	return nil
}

// quarantineRing removes a ring with its taps on all interfaces.
func (e *Engine) quarantineRing(folder string, why error) error {
	if err := e.setAside(folder, why); err != nil {
		return err
	}
	links, err := node.Links()
	if err != nil {
		return fmt.Errorf("list the network interfaces: %w", err)
	}
	r := &ring{Name: strings.ReplaceAll(filepath.Base(folder), "_", "."), folder: folder}
	var failed error
	for _, link := range links {
		for _, h := range []hook{hookIngress, hookEgress, hookXDP, hookXDPAny} {
			t, err := e.env.attacher.recover(r, tapPoint{Index: link.Attrs().Index, Hook: h})
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err == nil {
				err = t.detach()
				t.close()
			}
			failed = errors.Join(failed, err)
		}
	}
	return errors.Join(failed, removePins(folder))
}
