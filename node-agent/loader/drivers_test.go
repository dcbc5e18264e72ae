// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/node"
)

func TestDriversThatFitAreLoaded(t *testing.T) {
	modules := t.TempDir()
	drivers := filepath.Join(modules, "6.1.0-test", "drivers")
	require.NoError(t, os.MkdirAll(drivers, 0o755))
	for _, name := range []string{"igb_ringcap.ko", "e1000e_ringcap.ko"} {
		require.NoError(t, os.WriteFile(filepath.Join(drivers, name), nil, 0o644))
	}
	for _, test := range []struct {
		what   string
		mode   Mode
		load   error
		loaded []string
		fails  bool
	}{
		{what: "loaded", mode: Load, loaded: []string{"igb_ringcap"}},
		{what: "loaded before", mode: Load, load: unix.EEXIST, loaded: []string{"igb_ringcap"}},
		{what: "refused", mode: Load, load: unix.ENOKEY, fails: true},
		{what: "not asked for", mode: Preloaded},
	} {
		t.Run(test.what, func(t *testing.T) {
			kernel := fakeKernel{load: test.load}
			l := Loader{Mode: test.mode, ModulesDir: modules, Identity: node.Identity{KernelRelease: "6.1.0-test"}, Kernel: &kernel}
			loaded, err := l.LoadDrivers([]string{"igb", "virtio_net"})
			assert.Equal(t, test.loaded, loaded)
			assert.Equal(t, test.fails, err != nil, err)
			if test.mode == Load {
				assert.Equal(t, []string{
					filepath.Join(modules, "6.1.0-test", "ringcap_driver.ko"), filepath.Join(drivers, "igb_ringcap.ko"),
				}, kernel.loaded)
			}
		})
	}
}
