// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
)

var (
	here  = plan.Interface{Name: "vf0", Index: 7, RxQueues: 2, Driver: "igbvf", PCIAddress: "0000:04:10.0"}
	free  = map[string][]plan.PoolDevice{"a.com/vf": {{PCIAddress: here.PCIAddress}}}
	given = map[string][]plan.PoolDevice{"a.com/vf": {{PCIAddress: here.PCIAddress, Pod: "n/p"}}}
	want  = map[string]plan.Function{here.PCIAddress: {Interface: here, Resource: "a.com/vf"}}
)

// The interface stays known while it is in a pod, even to the next agent and without the kubelet. It is unknown after
// a boot, and when it was taken out of its pool.
func TestLook(t *testing.T) {
	file, answer, err := filepath.Join(t.TempDir(), "pools.json"), free, error(nil)
	look := func(boot string, interfaces ...plan.Interface) map[string]plan.Function {
		t.Helper()
		p := Pools{
			List:    func(context.Context) (map[string][]plan.PoolDevice, error) { return answer, err },
			Records: node.Records[Function]{Path: file, BootID: boot},
		}
		pools, seen, failed := p.Refresh(t.Context(), interfaces)
		require.ErrorIs(t, failed, err)
		require.Equal(t, answer, pools)
		return seen
	}
	other := plan.Interface{Name: "eth0", Index: 2, PCIAddress: "0000:00:03.0"}
	assert.Empty(t, look("a", other))
	assert.Equal(t, want, look("a", other, here))
	answer = given
	assert.Equal(t, want, look("a", other))
	answer, err = nil, errors.New("no kubelet")
	assert.Equal(t, want, look("a", other))
	err = nil
	assert.Equal(t, want, look("a", other, here), "the plugin is restarted")
	answer = given
	renamed := here
	renamed.Name = "temp_7"
	assert.Equal(t, want, look("a", other, renamed), "it is on its way")
	answer = map[string][]plan.PoolDevice{"a.com/vf": {{PCIAddress: "0000:04:10.2"}}}
	assert.Equal(t, want, look("a", other), "it may be in a pod")
	assert.Empty(t, look("a", other, here))
	answer = free
	assert.Equal(t, want, look("a", here))
	assert.Empty(t, look("b", other))
}

// A change to the file while the agent runs is undone. A file that the next agent cannot read is reported and replaced.
func TestRecordsAreDamaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pools.json")
	list := func(context.Context) (map[string][]plan.PoolDevice, error) { return free, nil }
	p := Pools{List: list, Records: node.Records[Function]{Path: file, BootID: "a"}}
	for range 2 {
		_, seen, err := p.Refresh(t.Context(), []plan.Interface{here})
		require.NoError(t, err)
		assert.Equal(t, want, seen)
		require.FileExists(t, file)
		require.NoError(t, os.Remove(file))
	}
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	p.Records = node.Records[Function]{Path: file, BootID: "a"}
	_, seen, err := p.Refresh(t.Context(), []plan.Interface{here})
	require.ErrorContains(t, err, "pools.json")
	assert.Equal(t, want, seen)
	_, _, err = p.Refresh(t.Context(), nil)
	require.NoError(t, err)
}
