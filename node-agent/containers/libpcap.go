// SPDX-License-Identifier: Apache-2.0

package containers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/node"
)

// libpcapFile is one build, under From and To, and where images with its C library have theirs.
type libpcapFile struct {
	name  string
	paths []string
}

// Mounting over what the loader finds by itself, rather than LD_LIBRARY_PATH, does not depend on the environment that
// the container sets, and works and for programs with file capabilities. A file that the image has not is made in the
// container only. musl looks into /usr/local/lib before /usr/lib, where its distributions have libpcap, and where
// others may have one for glibc.
var libpcapFiles = []libpcapFile{
	{"glibc/libpcap.so.0.8", []string{"/usr/lib/" + multiarch[runtime.GOARCH] + "/libpcap.so.0.8", "/usr/lib64/libpcap.so.1"}},
	{"musl/libpcap.so.1", []string{"/usr/local/lib/libpcap.so.1"}},
}

// multiarch is Debian's name of the folder for libraries.
var multiarch = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// Library gives containers of stock images a libpcap that knows ringcap: a file of the host, mounted over the one
// that programs of the image load. It is the builds that an agent has, and their copies on the host.
type Library struct {
	// From is the agent's own folder; To one of the host, by the same path for the agent and for the kubelet, from which
	// code can be executed.
	From, To string
}

// Provide makes the copies what the agent's builds are. Containers that run keep what they have.
func (l Library) Provide() error {
	for _, f := range libpcapFiles {
		if err := l.copy(f.name); err != nil {
			return fmt.Errorf("put libpcap into %s for spec.consumers.injectLibpcap: %w", l.To, err)
		}
	}
	return nil
}

func (l Library) copy(name string) error {
	build, err := os.ReadFile(filepath.Join(l.From, name))
	if err != nil {
		return err
	}
	to := filepath.Join(l.To, name)
	if have, err := os.ReadFile(to); err == nil && bytes.Equal(have, build) {
		return nil
	}
	return node.WriteFile(to, build)
}

// Withdraw removes the copies. Containers that run keep what they have.
func (l Library) Withdraw() error {
	for _, f := range libpcapFiles {
		path := filepath.Join(l.To, f.name)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the libpcap for containers: %w", err)
		}
		_ = os.Remove(node.Unfinished(path))
		// What else is in there is not ours.
		_ = os.Remove(filepath.Dir(path))
	}
	return nil
}

// Mounts are what a container gets.
func (l Library) Mounts() []capture.PathPair {
	var mounts []capture.PathPair
	for _, f := range libpcapFiles {
		for _, path := range f.paths {
			mounts = append(mounts, capture.PathPair{Host: filepath.Join(l.To, f.name), Container: path})
		}
	}
	return mounts
}
