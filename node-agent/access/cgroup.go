// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// ErrNoPod: a process that belongs to no pod.
var ErrNoPod = errors.New("it runs in no pod")

// PodOf returns the UID of the pod that a process runs in, as its cgroup has it. proc is a proc file system.
func PodOf(proc string, pid int) (string, error) {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return "", fmt.Errorf("find the pod of process %d: %w", pid, err)
	}
	uid, ok := podUID(string(text))
	if !ok {
		return "", ErrNoPod
	}
	return uid, nil
}

// podFolder is a pod's folder in the cgroup tree as the kubelet names it: pod<UID> with the cgroupfs driver,
// kubepods[-<class>]-pod<UID>.slice, dashes in the UID as underscores, with systemd's. Static pods' UIDs have no dashes.
var podFolder = regexp.MustCompile(`^(?:kubepods(?:-burstable|-besteffort)?-)?pod([0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12})(?:\.slice)?$`)

// podUID reads a pod's UID out of /proc/<pid>/cgroup, of cgroup v1 or v2. The outermost folder counts: what is below a
// container's cgroup, the container may have named itself. Hierarchies that disagree name no pod.
func podUID(cgroup string) (string, bool) {
	found := ""
	for _, line := range strings.Split(cgroup, "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		uid := outermostPod(parts[2])
		if uid == "" {
			continue
		}
		if found != "" && found != uid {
			return "", false
		}
		found = uid
	}
	return found, found != ""
}

func outermostPod(path string) string {
	for _, folder := range strings.Split(path, "/") {
		if m := podFolder.FindStringSubmatch(folder); m != nil {
			return strings.ReplaceAll(m[1], "_", "-")
		}
	}
	return ""
}
