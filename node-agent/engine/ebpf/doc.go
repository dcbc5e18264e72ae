// SPDX-License-Identifier: Apache-2.0

// Package ebpf is the capture engine for kernels without the ringcap module. Programs at tc ingress and egress copy
// packets into the lanes of a queue. The lanes have the module's layout, in maps that can be mapped. A server on a unix
// socket hands a queue's maps to the process that gets the queue. The contract with that process is
// kmod/include/uapi/linux/ringcap.h.
//
// # What is kept where
//
// Everything that must outlive the process is pinned in a bpffs, by default below /sys/fs/bpf/ringcap/v3:
//
//	tables/{consumers,doorbells,attached,...}     the node's tables, shared by the programs of all rings
//	clusters/<name>_<base>/description            JSON in a map: what the cluster is; written last, removed first
//	clusters/<name>_<base>/queues                 the table of its queues' data maps
//	clusters/<name>_<base>/q<n>_data              a queue's lanes, which programs write
//	clusters/<name>_<base>/q<n>_consumer          what its consumer writes
//	clusters/<name>_<base>/q<n>_doorbell          the ring buffer that wakes its consumer
//	clusters/<name>_<base>/q<n>_shunts            the flows that its consumer has shunted, if it has
//	rings/<name>/description                      JSON in a map: which program its taps run
//	rings/<name>/counters                         the ring's account by CPU
//	rings/<name>/rules_<digest>/                  the maps of the ring's rule set
//	rings/<name>/tap_<ifindex>_{rx,tx,xdp}        a tap's link (tcx, XDP; filters of clsact are found by their name)
//	qdiscs/<ifindex>                              a note that the interface's clsact discipline is the engine's
//
// The program of a ring with few queues, and no rules, has the addresses of these queues' data and consumer maps, so that
// it looks nothing up. It holds these maps. If a queue gets other maps, the program uses the tables for this queue, until
// the next Apply gives the ring another program: see bpf/direct.h.
//
// The process keeps mappings of a queue's data and consumer maps, but no descriptor. For a consumer that attaches, it
// opens the maps at their pins. Only of a table of shunted flows it keeps the descriptor.
//
// After the process ended or was killed, New finds all of this again. It continues without touching the data path. bpffs
// allows no dots in names, so the dots of ring and cluster names are written as underscores.
//
// # What it needs
//
// The engine needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, and Linux 6.1 or later. It needs a bpffs that it may write to
// and that outlives it. A bpffs mounted inside of its container does not outlive it. The engine does not use the kernel's
// own type information (/sys/kernel/btf). Queues count against the memory limit of its cgroup.
//
// # Limits
//
// docs/engines.md and supported.go list what the engine lacks compared with the module.
//
// In transparent mode 0 it takes packets from the stack, after generic receive offload and before other tc programs. On
// kernels without tcx it takes them after existing filters of another kind. In modes 1 and 2 it takes them by XDP; an
// interface has only one XDP program.
//
// Time stamps are software ones, in nanoseconds. They are from the kernel's TAI clock, less its offset from UTC. On
// different CPUs the clock agrees within some nanoseconds. The engine reads the offset at every Apply and Observe. It
// follows a step of the wall clock at once.
//
// A queue's maps have less than 512 MiB together, the verifier's bound for an offset in a value. With more CPUs than
// lanes, several CPUs take turns in lane 0. A CPU that waits too long, for example for a virtual CPU that stands still,
// drops its packet for lack of memory.
package ebpf
