// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// sysctls is the folder of the network's, /proc/sys/net, writable.
type sysctls string

// ofInterfaces are its folders that have a folder for each interface. That is removed with the interface.
var ofInterfaces = []string{"ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"}

// writtenFirst are those that others depend on: without IPv6 the rest of it does nothing, and a secret chooses how addresses are
// made (addr_gen_mode).
var writtenFirst = []string{"ipv6/conf/disable_ipv6", "ipv6/conf/stable_secret"}

// notKept is made the interface's MTU by the kernel whenever a link comes up.
const notKept = "ipv6/conf/mtu"

// path of a key such as "ipv6/conf/accept_ra".
func (n sysctls) path(dev, key string) string {
	folder, name := path.Split(key)
	return filepath.Join(string(n), folder, dev, name)
}

// read gives what an interface has, by key. One that could not be written is an error: its value would be lost.
func (n sysctls) read(dev string) (map[string]string, error) {
	if _, err := os.Stat(string(n)); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, folder := range ofInterfaces {
		// A kernel without IPv6 has no such folder, nor has an interface with an MTU that is too small for it.
		files, err := os.ReadDir(n.path(dev, folder+"/"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, file := range files {
			info, err := file.Info()
			if err != nil {
				return nil, err
			}
			key := path.Join(folder, file.Name())
			if info.Mode()&0o600 != 0o600 || key == notKept {
				continue
			}
			value, err := readSysctl(n.path(dev, key))
			switch {
			case err == nil:
				values[key] = value
			case !errors.Is(err, unix.EIO): // of a secret that is not set
				return nil, fmt.Errorf("%w (%s must be writable)", err, n)
			}
		}
	}
	return values, nil
}

// write sets what differs. The error names everything that could not be set; the rest is.
func (n sysctls) write(dev string, values map[string]string) error {
	var errs []error
	for _, key := range append(slices.Clone(writtenFirst), slices.Sorted(maps.Keys(values))...) {
		value, known := values[key]
		if !known {
			continue
		}
		file := n.path(dev, key)
		have, err := readSysctl(file)
		if errors.Is(err, unix.EIO) || err == nil && have != value {
			err = os.WriteFile(file, []byte(value), 0)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// readSysctl fails also for a sysctl that can only be read.
func readSysctl(name string) (string, error) {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	return strings.TrimSpace(string(text)), err
}
