// SPDX-License-Identifier: Apache-2.0

// Package ebpf is the capture engine for kernels without the ringcap module: programs at tc ingress and egress copy
// packets into the lanes of a queue, which are the module's, in maps that can be mapped. A server on a unix socket hands a
// queue's maps to the process that it was given to. The contract with that process is kmod/include/uapi/linux/ringcap.h.
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
//	rings/<name>/description                      JSON in a map: which program its taps run
//	rings/<name>/counters                         the ring's account by CPU
//	rings/<name>/rules_<digest>/                  the maps of the ring's rule set
//	rings/<name>/tap_<ifindex>_{rx,tx,xdp}        a tap's link (tcx, XDP; filters of clsact are found by their name)
//	qdiscs/<ifindex>                              a note that the interface's clsact discipline is the engine's
//
// Of a queue's maps the process keeps what it has mapped of the first two, and no descriptor: it opens them at their pins
// for a consumer that attaches.
//
// New finds all of it again after the process ended or was killed, and goes on without touching the data path. bpffs
// has no dots in names, so that those of ring and cluster names are written as underscores.
//
// # What it needs
//
// CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, a bpffs that it may write to and that outlives it (one mounted inside of its
// container does not), and Linux 6.1 or later. The kernel's own type information (/sys/kernel/btf) is not used. Queues
// count against the memory limit of its cgroup.
//
// # Limits
//
// What it lacks beside the module is in docs/engines.md and in supported.go. In transparent mode 0 packets are taken from
// the stack, after generic receive offload and before other tc programs; on kernels without tcx, after filters of another
// kind that are there already. In modes 1 and 2 they are taken by XDP, of which an interface has one program. Time stamps are software ones,
// from the kernel's TAI clock (nanoseconds, within some of each other on different CPUs) less its distance from UTC,
// which is read at every Apply and Observe: a step of the wall clock is followed at once. A queue's maps have less than
// 512 MiB together, the verifier's bound for an offset in a value. With more CPUs than lanes several CPUs take turns in
// lane 0; one that waits too long, for example for a virtual CPU that stands still, drops its packet for lack of memory.
package ebpf
