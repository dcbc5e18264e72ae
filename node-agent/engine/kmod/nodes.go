// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// nodeFolder is the run folder, which has copies of the queues' device nodes. Only root can open the module's own
// nodes, in /dev. Every user who reaches a copy can open it, but the folder keeps the host's users out. The container
// runtime makes a node like the copy in the one container that gets the queue. A user in that container who is not
// root must be able to open it.
type nodeFolder string

// NodesDir is the folder of the copies. It is not a valid name of a cluster, because the run folder also has one
// folder for each cluster.
const NodesDir = ".dev"

// make makes the copy of a queue's node. It replaces the copy if the queue now has another number.
func (f nodeFolder) make(id capture.QueueID, devT uint32) (string, error) {
	root := filepath.Join(string(f), NodesDir)
	if err := os.MkdirAll(filepath.Join(root, id.Cluster), 0o755); err != nil {
		return "", fmt.Errorf("make the folder of device nodes: %w", err)
	}
	if err := os.Chmod(root, 0o700); err != nil {
		return "", fmt.Errorf("close the folder of device nodes: %w", err)
	}
	path := filepath.Join(root, id.Cluster, strconv.Itoa(id.Queue))
	device := hostDevice(devT)
	var have unix.Stat_t
	if err := unix.Stat(path, &have); err == nil && have.Mode&unix.S_IFMT == unix.S_IFCHR && have.Rdev == device {
		return path, nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("remove the old device node: %w", err)
	}
	if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(device)); err != nil {
		return "", fmt.Errorf("make the device node %s (CAP_MKNOD is needed): %w", path, err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return "", fmt.Errorf("open the device node %s to the container's users: %w", path, err)
	}
	return path, nil
}

// remove removes the copies of a cluster's nodes.
func (f nodeFolder) remove(cluster string) error {
	return os.RemoveAll(filepath.Join(string(f), NodesDir, cluster))
}

// others lists the clusters with copies that are not among those given. A process that removed these clusters ended
// before it removed the copies.
func (f nodeFolder) others(clusters []string) (names []string) {
	folders, _ := os.ReadDir(filepath.Join(string(f), NodesDir)) // there is none before the first copy
	for _, folder := range folders {
		if !slices.Contains(clusters, folder.Name()) {
			names = append(names, folder.Name())
		}
	}
	return names
}

// hostDevice converts a kernel's device number to one of user space.
func hostDevice(devT uint32) uint64 {
	return unix.Mkdev(devT>>20, devT&(1<<20-1))
}
