// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// least is the minimum that a Reserve in percent keeps on a small node: 256 MiB.
const least = 256 << 20

// Reserve is the part of a node's memory that queues leave free: a percentage with a minimum of 256 MiB, or a number
// of bytes.
type Reserve struct {
	percent, bytes uint64
}

// DefaultReserve is a fifth.
var DefaultReserve = Reserve{percent: 20}

// UnmarshalText reads "20%" or "4Gi".
func (r *Reserve) UnmarshalText(text []byte) error {
	if number, ok := strings.CutSuffix(string(text), "%"); ok {
		percent, err := strconv.ParseUint(number, 10, 64)
		if err != nil || percent > 100 {
			return fmt.Errorf("%q: must be between 0%% and 100%%", text)
		}
		*r = Reserve{percent: percent}
		return nil
	}
	quantity, err := resource.ParseQuantity(string(text))
	if err != nil || quantity.Sign() < 0 {
		return fmt.Errorf("%q: must be a percentage of the node's memory, as 20%%, or bytes, as 4Gi", text)
	}
	*r = Reserve{bytes: uint64(quantity.Value())}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (r Reserve) MarshalText() ([]byte, error) {
	if r.percent > 0 {
		return fmt.Appendf(nil, "%d%%", r.percent), nil
	}
	return []byte(resource.NewQuantity(int64(r.bytes), resource.BinarySI).String()), nil
}

// of returns how many bytes of total the Reserve keeps free.
func (r Reserve) of(total uint64) uint64 {
	if r.percent > 0 {
		return max(total/100*r.percent, least)
	}
	return r.bytes
}

// hugePages returns the bytes that were set aside as huge pages, which no queue can have. MemAvailable does not
// include them. Old kernels report only those of the default size.
func hugePages(meminfo map[string]uint64) uint64 {
	if all, known := meminfo["Hugetlb:"]; known {
		return all
	}
	return meminfo["HugePages_Total:"] * (meminfo["Hugepagesize:"] >> 10)
}

// Node is the memory of this node.
type Node struct{ Reserve Reserve }

// Read reads the node's memory.
func (n Node) Read() (capture.Memory, error) { return n.read("/proc/meminfo") }

func (n Node) read(path string) (capture.Memory, error) {
	file, err := os.Open(path)
	if err != nil {
		return capture.Memory{}, err
	}
	defer file.Close()
	found := map[string]uint64{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) >= 2 {
			kib, _ := strconv.ParseUint(fields[1], 10, 64)
			found[fields[0]] = kib << 10
		}
	}
	total := found["MemTotal:"]
	if total == 0 {
		return capture.Memory{}, fmt.Errorf("%s has no MemTotal", path)
	}
	m := capture.Memory{Total: total - min(total, hugePages(found)), Available: found["MemAvailable:"], AgentRoom: agentRoom()}
	m.Reserve = n.Reserve.of(m.Total)
	return m, nil
}
