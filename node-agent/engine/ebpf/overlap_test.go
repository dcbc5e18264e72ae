// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The kernels of the suites have the fix. To show that a kernel without it would be found, the first record is given
// back before the second is asked for. Then every kernel gives out the second, as one without the fix does anyway.
func TestKernelsThatLetRecordsOverlapAreFound(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it loads an eBPF program")
	}
	require.NoError(t, CheckOverlap())
	err := checkOverlap(false)
	require.ErrorIs(t, err, ErrOverlap)
	require.ErrorContains(t, err, "CVE-2024-41009")
}
