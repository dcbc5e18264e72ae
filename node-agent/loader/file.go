// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"strings"
)

// signatureMark ends the file of a signed module.
const signatureMark = "~Module signature appended~\n"

// File is what a module's file declares. Only the kernel decides whether it loads the module.
type File struct {
	Path string
	// Release is the kernel that it was built for.
	Release string
	// Version is the module's own version. SourceVersion is a hash of its sources.
	Version, SourceVersion string
	Signed                 bool
	// Undefined lists the symbols that the kernel must have.
	Undefined []string
}

// ReadFile reads a module's file. The error tells what is wrong with it.
func ReadFile(path string) (File, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return File{}, err
	}
	object, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return File{}, fmt.Errorf("%s is not a kernel module: %w", path, err)
	}
	f := File{Path: path, Signed: bytes.HasSuffix(content, []byte(signatureMark))}
	if err := f.information(object); err != nil {
		return File{}, fmt.Errorf("%s is not a kernel module: %w", path, err)
	}
	symbols, err := object.Symbols()
	if err != nil {
		return File{}, fmt.Errorf("%s is not a kernel module: %w", path, err)
	}
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF && s.Name != "" && elf.ST_BIND(s.Info) == elf.STB_GLOBAL {
			f.Undefined = append(f.Undefined, s.Name)
		}
	}
	return f, nil
}

// information reads .modinfo: words key=value, each followed by a zero byte.
func (f *File) information(object *elf.File) error {
	section := object.Section(".modinfo")
	if section == nil {
		return fmt.Errorf("it has no section .modinfo")
	}
	text, err := io.ReadAll(section.Open())
	if err != nil {
		return err
	}
	for word := range strings.SplitSeq(string(text), "\x00") {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "vermagic":
			f.Release, _, _ = strings.Cut(value, " ")
		case "version":
			f.Version = value
		case "srcversion":
			f.SourceVersion = value
		}
	}
	if f.Release == "" {
		return fmt.Errorf("it does not name the kernel that it is for")
	}
	return nil
}
