// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoPod means that the kubelet has no cgroup of a pod.
var ErrNoPod = errors.New("the kubelet has no cgroup of this pod")

// Cgroups is the folder where the node's cgroups are mounted (/sys/fs/cgroup), version 2 or 1. The processes of a pod
// are found in the kubelet's part of it, from the top down. The name of a process's cgroup proves nothing: cgroups
// are delegated to users, who choose the names.
type Cgroups string

// kubeletRoots are the paths of the kubelet's part: for a cgroupfs and a systemd driver. They include the default and
// a cgroupRoot of one folder, as kind has it (/kubelet).
var kubeletRoots = []string{"kubepods", "kubepods.slice", "*/kubepods", "*.slice/*-kubepods.slice"}

// uidForm matches a pod's UID. The UID of a static pod has no dashes. It becomes a part of a path.
var uidForm = regexp.MustCompile(`^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$`)

// claim matches a pod's folder in a path, with dashes or underscores in the UID. claimsMax bounds the outermost
// folders that are looked at.
var claim = regexp.MustCompile(`pod([0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12})(?:\.slice)?(?:/|\n|$)`)

const claimsMax = 8

// PodOf returns the UID of the pod that a process runs in. The process's cgroup must name the pod, and the pod's
// cgroup in the kubelet's part of the tree must list the process. proc is a proc file system.
func (c Cgroups) PodOf(proc string, pid int) (string, error) {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return "", fmt.Errorf("find the pod of process %d: %w", pid, err)
	}
	var seen []string
	why := []string{"it runs in no pod"}
	for _, match := range claim.FindAllStringSubmatch(string(text), -1) {
		uid := strings.ReplaceAll(match[1], "_", "-")
		if slices.Contains(seen, uid) || len(seen) == claimsMax {
			continue
		}
		seen = append(seen, uid)
		pids, err := c.Processes(uid)
		if slices.Contains(pids, pid) {
			return uid, nil
		}
		if err == nil {
			err = fmt.Errorf("the kubelet has not put it into the pod with UID %s, which its cgroup is called by", uid)
		}
		why = append(why, err.Error())
	}
	return "", errors.New(strings.Join(why, ": "))
}

// Processes lists the processes of the pod that the kubelet knows by a UID. Their numbers are those in this process's
// PID namespace. The error is ErrNoPod if the kubelet has no such pod. It names cgroups that look like the pod's but
// do not belong to root alone.
func (c Cgroups) Processes(uid string) ([]int, error) {
	if !uidForm.MatchString(uid) {
		return nil, fmt.Errorf("%q is not the UID of a pod", uid)
	}
	hierarchy := c.hierarchy()
	folders, foreign := trusted(hierarchy, uid)
	if len(folders) == 0 {
		return nil, errors.Join(fmt.Errorf("%w (UID %s, below %s)", ErrNoPod, uid, hierarchy), foreign)
	}
	var pids []int
	for _, folder := range folders {
		var err error
		if pids, err = appendProcesses(pids, folder); err != nil {
			return nil, err
		}
	}
	return pids, nil
}

// trusted returns a pod's cgroups that the kubelet made. foreign names cgroups that another user could have made.
func trusted(hierarchy, uid string) (folders []string, foreign error) {
	for _, pattern := range kubeletRoots {
		roots, _ := filepath.Glob(filepath.Join(hierarchy, pattern)) // fails only for a wrong pattern
		for _, root := range roots {
			for _, folder := range podFolders(root, uid) {
				if !exists(folder) {
					continue
				}
				if err := rootsOwn(hierarchy, folder); err != nil {
					foreign = errors.Join(foreign, err)
					continue
				}
				folders = append(folders, folder)
			}
		}
	}
	return folders, foreign
}

// hierarchy returns the hierarchy of version 2, or one of version 1 in which every kubelet puts its pods.
func (c Cgroups) hierarchy() string {
	if memory := filepath.Join(string(c), "memory"); exists(memory) && !exists(filepath.Join(string(c), "cgroup.controllers")) {
		return memory
	}
	return string(c)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// podFolders returns the possible paths of a pod's cgroup below its root: one for each class of service and driver.
func podFolders(root, uid string) []string {
	prefix, systemd := strings.CutSuffix(filepath.Base(root), ".slice")
	if !systemd {
		return []string{filepath.Join(root, "pod"+uid), filepath.Join(root, "burstable", "pod"+uid), filepath.Join(root, "besteffort", "pod"+uid)}
	}
	var folders []string
	pod := "-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
	for _, class := range []string{"", "-burstable", "-besteffort"} {
		folder := root
		if class != "" {
			folder = filepath.Join(root, prefix+class+".slice")
		}
		folders = append(folders, filepath.Join(folder, prefix+class+pod))
	}
	return folders
}

// rootsOwn returns an error if other users than root can write to a cgroup, or to one above it up to the top.
func rootsOwn(top, folder string) error {
	for ; ; folder = filepath.Dir(folder) {
		var st unix.Stat_t
		if err := unix.Lstat(folder, &st); err != nil {
			return fmt.Errorf("look at the cgroup %s: %w", folder, err)
		}
		if st.Uid != 0 || st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mode&0o022 != 0 {
			return fmt.Errorf("the cgroup %s (owner %d, mode %03o) is not root's alone: who may write to it can put any process into a pod",
				folder, st.Uid, st.Mode&0o777)
		}
		if folder == top {
			return nil
		}
	}
}

// appendProcesses adds the processes of a pod's cgroup and of all cgroups below it. These come and go in the
// meantime. Containers may own the cgroups below it, but can put only their own processes into them.
func appendProcesses(pids []int, pod string) ([]int, error) {
	err := filepath.WalkDir(pod, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "cgroup.procs" {
			var text []byte
			text, err = os.ReadFile(path)
			for _, line := range strings.Fields(string(text)) {
				if pid, bad := strconv.Atoi(line); bad == nil {
					pids = append(pids, pid)
				}
			}
		}
		// The cgroup above a threaded cgroup lists its processes.
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list a pod's processes: %w", err)
	}
	return pids, nil
}
