// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"os"
	"strings"
)

// isUnconfined reports whether a process, by its number from here, has no seccomp filter. Of one that cannot be seen it says no.
func isUnconfined(pid int32) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && strings.Contains(string(status), "\nSeccomp:\t0\n")
}
