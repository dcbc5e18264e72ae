// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// The verifier would need the kernel's own type information for relocations and for kernel functions. It would also
// need it for functions with a context argument that it verifies by themselves.
func TestObjectNeedsNoKernelTypes(t *testing.T) {
	spec, err := loadSpec()
	require.NoError(t, err)
	for name, program := range spec.Programs {
		functions := 0
		for i := range program.Instructions {
			ins := &program.Instructions[i]
			require.Nil(t, btf.CORERelocationMetadata(ins), "%s: instruction %d is relocated", name, i)
			require.False(t, ins.IsKfuncCall(), "%s: instruction %d calls a kernel function", name, i)
			function := btf.FuncMetadata(ins)
			if function == nil {
				continue
			}
			functions++
			if function.Name != name && function.Linkage == btf.GlobalFunc {
				requireNumbersOnly(t, function)
			}
		}
		require.Greater(t, functions, 1)
	}
}

// requireNumbersOnly requires that a function takes only numbers. For these the verifier does not need the kernel's
// types.
func requireNumbersOnly(t *testing.T, function *btf.Func) {
	t.Helper()
	for _, parameter := range function.Type.(*btf.FuncProto).Params {
		_, number := btf.UnderlyingType(parameter.Type).(*btf.Int)
		require.True(t, number, "%s: %s", function.Name, parameter.Name)
	}
}

func TestEngineWithoutKernelTypes(t *testing.T) {
	l := newLab(t)
	plan := l.plan(1)
	plan.Rings[0].Filter = inVLAN(t, 5)
	_, out := l.helper("nobtf", engineInput{PinDir: l.pinDir, RunDir: l.runDir, Plan: plan}, 0)
	require.Equal(t, "ready", l.line(out))
	c := l.consume("mirror", 0)
	l.send(tagged(frame(2, 60), 0x8100<<16|5))
	require.Len(t, l.collect(c, 1), 1)
}
