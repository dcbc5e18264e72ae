// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// bellPage is the doorbell's page that the consumer writes to. It is mapped for writing, but not read. As long as it
// is mapped, nobody can freeze the map.
type bellPage struct{ page []byte }

func mapBell(doorbell *ebpf.Map) (*bellPage, error) {
	page, err := unix.Mmap(doorbell.FD(), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a queue's doorbell: %w", err)
	}
	return &bellPage{page}, nil
}

func (b *bellPage) unmap() {
	// Fails only for addresses that are not of a mapping.
	_ = unix.Munmap(b.page)
}

const bellProgram = "ringcap_bell"

// loadBell loads the object's program that owns the timers of the queues' bells. The program stays in the kernel as
// long as one of the timers exists.
func loadBell(object *ebpf.CollectionSpec, bells, consumers, doorbells *ebpf.Map) (*ebpf.Program, error) {
	spec := object.Copy() // to parse the object again takes memory, for which the agent has a limit
	for name := range spec.Programs {
		if name != bellProgram {
			delete(spec.Programs, name)
		}
	}
	maps := map[string]*ebpf.Map{"rc_bells": bells, "rc_consumers": consumers, "rc_doorbells": doorbells}
	for name := range spec.Maps {
		if maps[name] == nil {
			delete(spec.Maps, name)
		}
	}
	clear(spec.Variables)
	loaded, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: maps})
	if err != nil {
		return nil, fmt.Errorf("load an eBPF program: %w", explainLoad(err))
	}
	defer loaded.Close()
	return loaded.DetachProgram(bellProgram), nil
}

// bellTries is how often a bell is prepared, a millisecond apart, if there is no memory for its timer. From Linux 6.18 on,
// the kernel does not wait for the allocator's locks, and has none if the CPU was interrupted while it held one.
const bellTries = 100

// makeRoomForTimers leaves free objects of a timer's size in the kernel's allocator. Some kernels (seen: 6.18.44, not
// Debian's 7) take memory for a timer only from there, and never add a page to it: after some hundred queues, all others
// failed for good. The kernel keeps a pipe in an object of the same size, and frees it when the pipe is closed.
func makeRoomForTimers() {
	const pipes = 64 // three pages of such objects
	var ends []int
	for range pipes {
		var pipe [2]int
		if unix.Pipe2(pipe[:], unix.O_CLOEXEC) != nil {
			break // as many as there are descriptors for
		}
		ends = append(ends, pipe[:]...)
	}
	for _, end := range ends {
		_ = unix.Close(end)
	}
}

// resetBell prepares the bell at an index for a consumer that has not slept yet.
func (t *tables) resetBell(index uint32) error { return t.prepareBell(bellRequest{Place: index}) }

// resumeBell prepares the bell at an index for the consumer of an earlier agent, which may be asleep.
func (t *tables) resumeBell(index uint32) error {
	return t.prepareBell(bellRequest{Place: index, Resumes: 1})
}

func (t *tables) prepareBell(request bellRequest) error {
	err := t.tryPrepareBell(request)
	for try := 1; errors.Is(err, unix.ENOMEM) && try < bellTries; try++ {
		if try > 1 {
			time.Sleep(time.Millisecond)
		}
		makeRoomForTimers()
		err = t.tryPrepareBell(request)
	}
	return err
}

func (t *tables) tryPrepareBell(request bellRequest) error {
	const shortest = 14 // the shortest packet that programs can be run with
	packet := make([]byte, shortest)
	if _, err := binary.Encode(packet, binary.NativeEndian, request); err != nil {
		return fmt.Errorf("encode a request of a bell: %w", err)
	}
	result, err := t.bell.Run(&ebpf.RunOptions{Data: packet})
	if err != nil {
		return fmt.Errorf("run an eBPF program: %w", explainRights(err))
	}
	if result != 0 {
		return fmt.Errorf("set the timer of a queue: %w", unix.Errno(-int32(result)))
	}
	return nil
}
