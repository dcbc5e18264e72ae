// SPDX-License-Identifier: Apache-2.0

package containers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// planned is a plan of a ring with taps, which feeds a cluster; pods are by the name of their interface.
func planned(cluster string, pods map[string]string, taps ...capture.Tap) plan.Result {
	return plan.Result{
		Plans: map[v1.Engine]capture.Plan{v1.EngineEBPF: {
			Rings:    []capture.Ring{{Name: "ring", Taps: taps, Outputs: []string{cluster}}, {Name: "other", Taps: []capture.Tap{{Interface: "no", Index: 1}}}},
			Clusters: []capture.Cluster{{Name: cluster}},
		}},
		Rings:    map[string]plan.Verdict{"ring": {Pods: pods}},
		Clusters: map[string]plan.Verdict{cluster: {}},
	}
}

func read(t *testing.T, dir, cluster string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, cluster, "interfaces", "names"))
	require.NoError(t, err)
	return string(text)
}

func TestNames(t *testing.T) {
	dir := t.TempDir()
	f := NewNames(dir)
	pod := map[string]string{"veth7": "shop/web-1"}
	require.NoError(t, f.Write(planned("ids", pod, capture.Tap{Interface: "veth7", Index: 7}, capture.Tap{Interface: "eth0", Index: 2})))
	assert.Equal(t, "2\teth0\t\n7\tveth7\tshop/web-1\n", read(t, dir, "ids"))

	// The pod is gone, the agent is another, and does not know the other pod yet.
	f = NewNames(dir)
	require.NoError(t, f.Write(planned("ids", nil, capture.Tap{Interface: "veth7", Index: 7}, capture.Tap{Interface: "veth9", Index: 9})))
	assert.Equal(t, "2\teth0\t\n7\tveth7\tshop/web-1\n9\tveth9\t\n", read(t, dir, "ids"))

	// The number is another interface's by now.
	require.NoError(t, f.Write(planned("ids", nil, capture.Tap{Interface: "eth1", Index: 7})))
	assert.Equal(t, "2\teth0\t\n7\teth1\t\n9\tveth9\t\n", read(t, dir, "ids"))

	mount, err := f.Mount("ids")
	require.NoError(t, err)
	assert.Equal(t, capture.PathPair{Host: filepath.Join(dir, "ids", "interfaces"), Container: "/run/ringcap/ids/interfaces"}, mount)
	_, err = f.Mount("new")
	require.NoError(t, err)
	assert.DirExists(t, filepath.Join(dir, "new", "interfaces"))

	require.NoError(t, f.Write(plan.Result{}))
	require.NoError(t, NewNames(dir).RemoveAll())
	assert.NoDirExists(t, filepath.Join(dir, "new"))
	assert.NoDirExists(t, filepath.Join(dir, "ids"))
}

func TestNamesAreBounded(t *testing.T) {
	dir := t.TempDir()
	f := NewNames(dir)
	for from := range 3 {
		var taps []capture.Tap
		for i := range maxNames {
			taps = append(taps, capture.Tap{Interface: "veth", Index: from*maxNames/2 + i + 1})
		}
		require.NoError(t, f.Write(planned("ids", nil, taps...)))
	}
	text := read(t, dir, "ids")
	assert.Equal(t, maxNames, strings.Count(text, "\n"))
	assert.True(t, strings.HasPrefix(text, fmt.Sprintf("%d\t", maxNames+1)))
}
