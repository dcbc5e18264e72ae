// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReserve(t *testing.T) {
	const node = 100 << 30
	for text, want := range map[string]uint64{
		"20%": 20 << 30, "100%": node, "0%": 0, "4Gi": 4 << 30, "0": 0, "1000": 1000,
	} {
		var r Reserve
		require.NoError(t, r.UnmarshalText([]byte(text)))
		assert.EqualValues(t, want, r.of(node), text)
		back, err := r.MarshalText()
		require.NoError(t, err)
		var again Reserve
		require.NoError(t, again.UnmarshalText(back))
		assert.Equal(t, r, again, text)
	}
	for _, text := range []string{"", "%", "-1%", "101%", "1.5%", "lots", "-1Gi", "20 %"} {
		assert.Error(t, new(Reserve).UnmarshalText([]byte(text)), "%q", text)
	}
	assert.EqualValues(t, 256<<20, Reserve{percent: 1}.of(2<<30), "of a small node")
}

func TestReadNode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meminfo")
	require.NoError(t, os.WriteFile(path, []byte("MemTotal:        4096000 kB\nMemFree:          524288 kB\nMemAvailable:    1048576 kB\n"), 0o644))
	m, err := Node{Reserve{percent: 25}}.read(path)
	require.NoError(t, err)
	assert.EqualValues(t, 4096000<<10, m.Total)
	assert.EqualValues(t, 1<<30, m.Available)
	assert.EqualValues(t, 1024000<<10, m.Reserve)

	// Three quarters are huge pages.
	for _, text := range []string{
		"HugePages_Total:       3\nHugepagesize:    1048576 kB\n",
		"HugePages_Total:       1\nHugepagesize:    1048576 kB\nHugetlb:         3145728 kB\n", // the others are of 2 MiB
	} {
		require.NoError(t, os.WriteFile(path, []byte("MemTotal:        4194304 kB\nMemAvailable:     524288 kB\n"+text), 0o644))
		m, err = Node{DefaultReserve}.read(path)
		require.NoError(t, err)
		assert.EqualValues(t, 1<<30, m.Total)
		assert.EqualValues(t, 256<<20, m.Reserve)
	}

	require.NoError(t, os.WriteFile(path, []byte("nonsense\n"), 0o644))
	_, err = Node{}.read(path)
	assert.Error(t, err)

	here, err := Node{}.Read()
	require.NoError(t, err)
	assert.Positive(t, here.Available)
}
