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

// sysctls is the path of the network's sysctls, /proc/sys/net, writable.
type sysctls string

// ofInterfaces lists the folders with a folder for each interface. The interface's folder is removed with the
// interface.
var ofInterfaces = []string{"ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"}

// writtenFirst lists the sysctls that others depend on. Without IPv6, the rest of it does nothing. A secret chooses
// how addresses are made (addr_gen_mode).
var writtenFirst = []string{"ipv6/conf/disable_ipv6", "ipv6/conf/stable_secret"}

// notKept is the sysctl that the kernel sets to the interface's MTU whenever a link comes up.
const notKept = "ipv6/conf/mtu"

// path returns the path of a key such as "ipv6/conf/accept_ra".
func (n sysctls) path(dev, key string) string {
	folder, name := path.Split(key)
	return filepath.Join(string(n), folder, dev, name)
}

// read returns the sysctls of an interface, by key. A sysctl that could not be written is an error, because its value
// would be lost.
func (n sysctls) read(dev string) (map[string]string, error) {
	if _, err := os.Stat(string(n)); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, folder := range ofInterfaces {
		// The folder is missing on a kernel without IPv6, or if the interface's MTU is too small for IPv6.
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
			case !errors.Is(err, unix.EIO): // the error of a secret that is not set
				return nil, fmt.Errorf("%w (%s must be writable)", err, n)
			}
		}
	}
	return values, nil
}

// write sets the values that differ. The error names everything that could not be set. All others are set.
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

// readSysctl also returns an error for a sysctl that is read-only.
func readSysctl(name string) (string, error) {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	return strings.TrimSpace(string(text)), err
}
