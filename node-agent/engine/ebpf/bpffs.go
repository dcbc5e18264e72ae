// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// layout is the folder below the pin directory. It changes with each incompatible change of the pins.
const layout = "v3"

// pins knows the paths in the bpffs.
type pins struct {
	root string
	// qdiscs holds the interfaces with a note that the engine added their clsact discipline.
	qdiscs map[int]bool
}

func (p pins) tables() string   { return filepath.Join(p.root, "tables") }
func (p pins) clusters() string { return filepath.Join(p.root, "clusters") }
func (p pins) rings() string    { return filepath.Join(p.root, "rings") }

func (p pins) cluster(name string, base uint32) string {
	return filepath.Join(p.clusters(), fmt.Sprintf("%s_%d", pinName(name), base))
}

func (p pins) ring(name string) string {
	return filepath.Join(p.rings(), pinName(name))
}

// pinName returns the name as bpffs accepts it: without dots. Names of rings and clusters have no underscores.
func pinName(name string) string {
	return strings.ReplaceAll(name, ".", "_")
}

// openPins ensures that dir is in a bpffs. It mounts one if nothing is mounted there yet.
func openPins(dir string, log *slog.Logger) (pins, error) {
	p := pins{root: filepath.Join(dir, layout), qdiscs: map[int]bool{}}
	mountPoint := filepath.Dir(dir)
	if !inBPFFS(mountPoint) {
		if err := os.MkdirAll(mountPoint, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return p, fmt.Errorf("make the mount point of the bpffs: %w", err)
		}
		if err := unix.Mount("bpf", mountPoint, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
			return p, fmt.Errorf("%s is not in a bpffs, and mounting one there failed: %w: mount it on the host "+
				"(mount -t bpf bpf %s) and give it to the agent", dir, err, mountPoint)
		}
		log.Warn("mounted a bpffs; in a container it goes with the container, and with it all captures: mount it on the host",
			"path", mountPoint)
	}
	return p, p.makeFolders()
}

func (p pins) makeFolders() error {
	for _, folder := range []string{p.clusters(), p.rings()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("make %s in the bpffs: %w", folder, explainRights(err))
		}
	}
	return nil
}

func inBPFFS(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.BPF_FS_MAGIC
}

// explainRights adds advice to an error that is due to missing rights. It returns other errors unchanged.
func explainRights(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w (the eBPF engine needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, and a kernel that is not "+
			"locked down against eBPF)", err)
	}
	return err
}
