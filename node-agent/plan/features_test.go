// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// TestTheReadmeSaysWhatEnginesServe requires that the README's table has "no" where an engine refuses a field, and
// nowhere else.
func TestTheReadmeSaysWhatEnginesServe(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	cells := map[string][]string{} // by field: the cells of KernelModule and EBPF
	for _, row := range regexp.MustCompile(`(?m)^\| [^|]+ \| ([^|]+) \| ([^|]+) \| (.+) \|$`).FindAllStringSubmatch(string(page), -1) {
		for _, field := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[3], -1) {
			cells[field[1]] = row[1:3]
		}
	}
	both := append(slices.Clone(served[v1.EngineKernelModule]), served[v1.EngineEBPF]...)
	for i, engine := range []v1.Engine{v1.EngineKernelModule, v1.EngineEBPF} {
		for field, row := range cells {
			refused := slices.Contains(both, feature("spec."+field)) && !slices.Contains(served[engine], feature("spec."+field))
			assert.Equal(t, refused, row[i] == "**no**", "%s: %s", engine, field)
		}
		for _, f := range missingFeatures(engine, both) {
			assert.Contains(t, cells, strings.TrimPrefix(string(f), "spec."), "%s does not serve it", engine)
		}
	}
}
