// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// module makes an object with a module's description of itself and nothing else.
func module(information ...string) []byte {
	const names = "\x00.modinfo\x00.shstrtab\x00.symtab\x00.strtab\x00"
	text := strings.Join(information, "\x00") + "\x00"
	var file bytes.Buffer
	header := elf.Header64{
		Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: 64, Shentsize: 64, Shnum: 5, Shstrndx: 2,
		Shoff: uint64(64 + len(text) + len(names) + 24),
	}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	offset := uint64(64)
	section := func(name string, kind elf.SectionType, size, link, entry int) elf.Section64 {
		s := elf.Section64{
			Name: uint32(strings.Index(names, name)), Type: uint32(kind), Off: offset, Size: uint64(size), Link: uint32(link), Entsize: uint64(entry), Addralign: 1,
		}
		offset += s.Size
		return s
	}
	for _, part := range []any{
		header, []byte(text), []byte(names), make([]byte, 24), elf.Section64{},
		section(".modinfo", elf.SHT_PROGBITS, len(text), 0, 0), section(".shstrtab", elf.SHT_STRTAB, len(names), 0, 0),
		section(".symtab", elf.SHT_SYMTAB, 24, 4, 24), section(".strtab", elf.SHT_STRTAB, 0, 0, 0),
	} {
		_ = binary.Write(&file, binary.LittleEndian, part) // into memory
	}
	return file.Bytes()
}

// image is a folder with a module of version 0.2, for this kernel.
func image(t *testing.T) string {
	t.Helper()
	dir := modules(t, identity.KernelRelease)
	content := module("version=0.2", "srcversion=NEW", "vermagic="+identity.KernelRelease+" SMP")
	require.NoError(t, os.WriteFile(filepath.Join(dir, identity.KernelRelease, moduleFile), content, 0o644))
	return dir
}

func TestUpgrade(t *testing.T) {
	ours := Outcome{Ours: true, SourceVersion: "OLD"}
	for name, test := range map[string]struct {
		upgrade Upgrade
		last    Outcome
		kernel  fakeKernel
		holders []string
		unknown error
		reason  string
		message string
		unloads int
		loads   int
	}{
		"never":           {upgrade: Never, last: ours, reason: v1.ReasonLoaded, message: "the image has another, 0.2 (NEW)"},
		"free":            {upgrade: WhenFree, last: ours, reason: v1.ReasonLoaded, message: "was loaded from", unloads: 1, loads: 1},
		"held":            {upgrade: WhenFree, last: ours, holders: []string{"pod a/b with queue 0 of ids"}, reason: v1.ReasonInUse, message: "in use by pod a/b with queue 0 of ids"},
		"nobody knows":    {upgrade: WhenFree, last: ours, unknown: errors.New("no kubelet"), reason: v1.ReasonInUse, message: "no kubelet"},
		"refused":         {upgrade: WhenFree, last: ours, kernel: fakeKernel{unload: unix.EBUSY}, reason: v1.ReasonInUse, message: "resource busy", unloads: 1},
		"another's":       {upgrade: WhenFree, reason: v1.ReasonLoaded, message: "was loaded before"},
		"replaced by one": {upgrade: WhenFree, last: Outcome{Ours: true, SourceVersion: "OTHER"}, reason: v1.ReasonLoaded, message: "was loaded before"},
		"the same":        {upgrade: WhenFree, last: Outcome{Ours: true, SourceVersion: "NEW"}, kernel: fakeKernel{source: "NEW"}, reason: v1.ReasonLoaded, message: "was loaded before"},
		"would not load":  {upgrade: WhenFree, last: ours, kernel: fakeKernel{enforced: true}, reason: v1.ReasonLoaded, message: "it stays, for 0.2 (NEW) would not be taken: KeyRejected"},
		"does not load": {
			upgrade: WhenFree, last: ours, kernel: fakeKernel{load: unix.ENOMEM}, reason: v1.ReasonLoadFailed, message: "cannot allocate memory", unloads: 1, loads: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.kernel.info = current
			if test.kernel.source == "" {
				test.kernel.source = "OLD"
			}
			l := Loader{
				Mode: Load, ModulesDir: image(t), Identity: identity, Kernel: &test.kernel, Upgrade: test.upgrade, Last: test.last,
				Holders: func() ([]string, error) { return test.holders, test.unknown },
			}
			got := l.Run()
			assert.Equal(t, test.reason, got.Reason, got.Message)
			assert.Contains(t, got.Message, test.message)
			assert.Equal(t, test.reason != v1.ReasonLoadFailed, got.Ready)
			assert.Equal(t, test.unloads, test.kernel.unloads)
			assert.Len(t, test.kernel.loaded, test.loads)
			assert.Equal(t, test.reason == v1.ReasonInUse, got.Reason == v1.ReasonInUse && got.Available == "0.2 (NEW)" && got.Ours)
		})
	}
}

// TestInUseIsReported: the agent goes on saying what the loader found.
func TestInUseIsReported(t *testing.T) {
	last := Outcome{Identity: identity, Ready: true, Version: current.Version, Reason: v1.ReasonInUse, Message: "held", Available: "0.2 (NEW)"}
	got := Loader{Identity: identity, Kernel: &fakeKernel{info: current}}.State(last, true)
	assert.Equal(t, last, got)
}

func TestParseUpgrade(t *testing.T) {
	_, err := ParseUpgrade("now")
	assert.ErrorContains(t, err, `--upgrade "now": must be Never, WhenFree or Evict`)
}
