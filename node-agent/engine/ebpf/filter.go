// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"github.com/cilium/ebpf/asm"
	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// translateFilter is the seam to package filter.
func translateFilter([]bpf.RawInstruction) (asm.Instructions, error) {
	return nil, capture.ErrUnsupported
}
