// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/engine/kmod"
	"github.com/ringcap/ringcap/node-agent/node"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// fakeKernel answers as it is told; a module that was loaded answers probes.
type fakeKernel struct {
	info      kmod.Info
	probe     error
	load      error
	noModules bool
	lockdown  string
	log       string
	missing   []string
	enforced  bool
	source    string
	unload    error
	unloads   int
	loaded    []string
}

func (k *fakeKernel) Probe() (kmod.Info, error)                 { return k.info, k.probe }
func (k *fakeKernel) SupportsModules() bool                     { return !k.noModules }
func (k *fakeKernel) Lockdown() string                          { return k.lockdown }
func (k *fakeKernel) SourceVersion() string                     { return k.source }
func (k *fakeKernel) Unload() error                             { k.unloads++; return k.unload }
func (k *fakeKernel) SignaturesEnforced() bool                  { return k.enforced }
func (k *fakeKernel) Missing([]string) []string                 { return k.missing }
func (k *fakeKernel) LoadContent(module []byte) (string, error) { return k.Load(string(module)) }
func (k *fakeKernel) Load(path string) (string, error) {
	k.loaded = append(k.loaded, path)
	if k.load == nil {
		k.probe = nil
	}
	return k.log, k.load
}

var (
	errAbsent = fmt.Errorf("find the family: %w", os.ErrNotExist)
	current   = kmod.Info{ABI: 2, ABIMin: 2, Version: "0.1"}
	identity  = node.Identity{BootID: "boot", KernelRelease: "6.1.0-test"}
)

func modules(t *testing.T, releases ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, release := range releases {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, release), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, release, "ringcap.ko"), nil, 0o644))
	}
	return dir
}

func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		mode    Mode
		kernel  fakeKernel
		image   []string
		reason  string
		message string
		loads   int
	}{
		"loads the module of this kernel": {
			kernel: fakeKernel{probe: errAbsent, info: current}, image: []string{"6.1.0-test", "6.12.0"},
			reason: v1.ReasonLoaded, message: "module 0.1 was loaded from /", loads: 1,
		},
		"uses one that is loaded": {
			kernel: fakeKernel{info: current}, image: []string{"6.1.0-test"}, reason: v1.ReasonLoaded, message: "was loaded before",
		},
		"lost a race": {
			kernel: fakeKernel{probe: errAbsent, load: unix.EEXIST}, image: []string{"6.1.0-test"},
			reason: v1.ReasonLoadFailed, message: "does not answer", loads: 1,
		},
		"preloaded": {mode: Preloaded, kernel: fakeKernel{info: current}, reason: v1.ReasonLoaded, message: "0.1"},
		"preloaded, and it is not": {
			mode: Preloaded, kernel: fakeKernel{probe: errAbsent}, image: []string{"6.1.0-test"},
			reason: v1.ReasonLoadFailed, message: "load it on the node",
		},
		"disabled": {mode: Disabled, kernel: fakeKernel{info: current}, reason: v1.ReasonDisabled, message: "module.mode: Disabled"},
		"another ABI": {
			kernel: fakeKernel{info: kmod.Info{ABI: 9, ABIMin: 8, Version: "9.0"}}, reason: v1.ReasonIncompatible,
			message: "speaks versions 8 to 9 of the interface, this agent 2 to 3: upgrade ringcap",
		},
		"an older ABI": {
			kernel: fakeKernel{info: kmod.Info{ABI: 1, ABIMin: 1, Version: "0.0"}}, reason: v1.ReasonIncompatible,
			message: "module 0.0 was loaded before and speaks versions 1 to 1 of the interface, this agent 2 to 3: unload it",
		},
		"a newer one that speaks ours too": {
			kernel: fakeKernel{info: kmod.Info{ABI: 3, ABIMin: 2, Version: "0.2"}}, reason: v1.ReasonLoaded, message: "module 0.2",
		},
		"no module for this kernel": {
			kernel: fakeKernel{probe: errAbsent}, image: []string{"6.12.0", "7.0.0"}, reason: v1.ReasonNoPrebuiltModule,
			message: "the image has no module for kernel 6.1.0-test; it has them for: 6.12.0, 7.0.0",
		},
		"no module at all": {kernel: fakeKernel{probe: errAbsent}, reason: v1.ReasonNoPrebuiltModule, message: "it has them for: none. Put one into it"},
		"a kernel without modules": {
			kernel: fakeKernel{probe: errAbsent, noModules: true}, image: []string{"6.1.0-test"},
			reason: v1.ReasonModulesUnsupported, message: "without support for modules",
		},
		"a module for another kernel": {
			kernel: fakeKernel{probe: errAbsent, load: unix.ENOEXEC, log: "ringcap: version magic '6.12' should be '6.1'"},
			image:  []string{"6.1.0-test"}, reason: v1.ReasonInvalidModuleFormat, message: "is not a kernel module", loads: 1,
		},
		"unsigned": {
			kernel: fakeKernel{probe: errAbsent, load: unix.EKEYREJECTED}, image: []string{"6.1.0-test"},
			reason: v1.ReasonKeyRejected, message: "is not signed: enrol the key", loads: 1,
		},
		"signed with an unknown key": {
			kernel: fakeKernel{probe: errAbsent, load: unix.ENOKEY}, image: []string{"6.1.0-test"}, reason: v1.ReasonKeyRejected, loads: 1,
		},
		"lockdown": {
			kernel: fakeKernel{probe: errAbsent, load: unix.EPERM, lockdown: "integrity"}, image: []string{"6.1.0-test"},
			reason: v1.ReasonLockdown, message: "locked down (integrity)", loads: 1,
		},
		"no capability": {
			kernel: fakeKernel{probe: errAbsent, load: unix.EPERM, lockdown: "none"}, image: []string{"6.1.0-test"},
			reason: v1.ReasonLoadFailed, message: "CAP_SYS_MODULE", loads: 1,
		},
		"a symbol is missing": {
			kernel: fakeKernel{probe: errAbsent, load: unix.ENOENT}, image: []string{"6.1.0-test"},
			reason: v1.ReasonSymbolMissing, message: "lacks a symbol", loads: 1,
		},
		"out of memory": {
			kernel: fakeKernel{probe: errAbsent, load: unix.ENOMEM}, image: []string{"6.1.0-test"},
			reason: v1.ReasonLoadFailed, message: "cannot allocate memory", loads: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			mode := test.mode
			if mode == "" {
				mode = Load
			}
			got := Loader{Mode: mode, ModulesDir: modules(t, test.image...), Identity: identity, Kernel: &test.kernel}.Run()
			assert.Equal(t, test.reason, got.Reason)
			assert.Contains(t, got.Message, test.message)
			assert.Equal(t, test.reason == v1.ReasonLoaded, got.Ready)
			assert.Len(t, test.kernel.loaded, test.loads)
		})
	}
}

func TestStateFollowsTheModule(t *testing.T) {
	loaded := Outcome{Identity: identity, Ready: true, Reason: v1.ReasonLoaded, Version: "0.1"}
	refused := Outcome{Identity: identity, Reason: v1.ReasonKeyRejected, Message: "enrol"}
	present, absent := &fakeKernel{info: current}, &fakeKernel{probe: errAbsent}
	for name, test := range map[string]struct {
		kernel *fakeKernel
		last   Outcome
		known  bool
		reason string
	}{
		"still loaded":             {present, loaded, true, v1.ReasonLoaded},
		"loaded by hand meanwhile": {present, refused, true, v1.ReasonLoaded},
		"unloaded meanwhile":       {absent, loaded, true, v1.ReasonLoadFailed},
		"cannot be asked now":      {&fakeKernel{probe: unix.ENOBUFS}, loaded, true, v1.ReasonLoaded},
		"still refused":            {absent, refused, true, v1.ReasonKeyRejected},
		"disabled":                 {present, Outcome{Reason: v1.ReasonDisabled}, true, v1.ReasonDisabled},
		"no loader ran":            {absent, Outcome{}, false, v1.ReasonNoPrebuiltModule},
		"no loader ran, loaded":    {present, Outcome{}, false, v1.ReasonLoaded},
		"no modules":               {&fakeKernel{probe: errAbsent, noModules: true}, Outcome{}, false, v1.ReasonModulesUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			got := Loader{Identity: identity, Kernel: test.kernel}.State(test.last, test.known)
			assert.Equal(t, test.reason, got.Reason)
			assert.Equal(t, test.reason == v1.ReasonLoaded, got.Ready)
		})
	}
}

func TestAnOutcomeIsOfOneBootAndKernel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	_, known, err := Read(dir, identity)
	require.NoError(t, err)
	assert.False(t, known)

	written := Outcome{Identity: identity, Ready: true, Reason: v1.ReasonLoaded, Message: "m", Version: "0.1"}
	require.NoError(t, written.Write(dir))
	got, known, err := Read(dir, identity)
	require.NoError(t, err)
	assert.True(t, known)
	assert.Equal(t, written, got)
	_, known, err = Read(dir, node.Identity{BootID: "next boot", KernelRelease: identity.KernelRelease})
	require.NoError(t, err)
	assert.False(t, known)
}

func TestParseMode(t *testing.T) {
	_, err := ParseMode("load")
	assert.ErrorContains(t, err, `--mode "load": must be Load, Preloaded or Disabled`)
}
