// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"os"
	"strings"
)

// isUnconfined reports whether a process has no seccomp filter. pid is its number in this process's namespace. It is
// false for a process that is not visible.
func isUnconfined(pid int32) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && strings.Contains(string(status), "\nSeccomp:\t0\n")
}
