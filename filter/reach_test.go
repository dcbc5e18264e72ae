// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
)

// The kernel's verifier must accept loads around the reach of direct ones, with any X.
func TestLoadsAroundTheReachOfDirectOnes(t *testing.T) {
	wire := builder{rand.New(rand.NewSource(10))}.payload(60)
	for at := uint32(directReach) - 5; at <= directReach+2; at++ {
		programs := loadsOf(at)
		for _, size := range []uint16{sizeB, sizeH, sizeW} {
			programs = append(programs, []bpf.RawInstruction{
				{Op: ld | sizeH | modeAbs, K: 20}, {Op: tax},
				{Op: ld | size | modeInd, K: at}, {Op: ld | size | modeInd, K: at - 1},
				{Op: alu | opOr | srcK, K: 1 << 30}, {Op: retA},
			})
		}
		for _, prog := range programs {
			loaded := loadEBPF(t, prog, nil)
			require.Equal(t, inKernel(prog, packet{data: wire}), runEBPF(t, loaded, wire), "%+v", prog)
			inXDP := loadXDP(t, prog)
			require.Equal(t, inKernel(prog, packet{data: wire}), runEBPF(t, inXDP, wire), "%+v", prog)
			inXDP.Close()
		}
	}
}
