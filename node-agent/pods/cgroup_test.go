// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/operator/api/consumers"
)

// put makes a cgroup as it looks to a reader, with processes.
func put(t *testing.T, cgroups, path string, pids ...int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to create cgroups")
	}
	require.NoError(t, os.MkdirAll(filepath.Join(cgroups, path), 0o755))
	text := strings.Trim(fmt.Sprintln(pids), "[]\n")
	require.NoError(t, os.WriteFile(filepath.Join(cgroups, path, "cgroup.procs"), []byte(strings.ReplaceAll(text, " ", "\n")), 0o644))
}

// Each layout has the pod with process 10, and another pod with process 11. The path is that of a reader at the top
// or in a container.
func TestLayoutsOfCgroups(t *testing.T) {
	const static = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
	const v1 = "12:pids:%s\n4:memory:%[1]s\n1:name=systemd:%[1]s\n0::/\n"
	for name, test := range map[string]struct{ pod, uid, proc string }{
		"cgroupfs, guaranteed":       {"kubepods/pod" + uid, uid, "0::/%s\n"},
		"cgroupfs, burstable":        {"kubepods/burstable/pod" + uid, uid, "0::/%s\n"},
		"cgroupfs, best effort":      {"kubepods/besteffort/pod" + uid, uid, "0::/../../../../%s\n"},
		"cgroupfs, static pod":       {"kubepods/burstable/pod" + static, static, "0::/%s\n"},
		"cgroupfs, cgroupRoot":       {"kubelet/kubepods/besteffort/pod" + uid, uid, "0::/%s\n"},
		"systemd, guaranteed":        {"kubepods.slice/kubepods-pod" + under + ".slice", uid, "0::/%s\n"},
		"systemd, burstable":         {"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under + ".slice", uid, "0::/%s\n"},
		"systemd, best effort":       {"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + under + ".slice", uid, "0::/../../../../%s\n"},
		"systemd in kind":            {"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" + under + ".slice", uid, "0::/%s\n"},
		"systemd in kind guaranteed": {"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + under + ".slice", uid, "0::/%s\n"},
		"version 1":                  {"memory/kubepods/besteffort/pod" + uid, uid, v1},
		"version 1, systemd":         {"memory/kubepods.slice/kubepods-pod" + under + ".slice", uid, v1},
	} {
		t.Run(name, func(t *testing.T) {
			proc, c := t.TempDir(), t.TempDir()
			put(t, c, test.pod+"/cri-containerd-abc.scope", 10)
			put(t, c, filepath.Dir(test.pod)+"/pod"+other+"/abc", 11)
			got, err := Cgroups(c).Processes(test.uid)
			require.NoError(t, err)
			assert.Equal(t, []int{10}, got)
			for pid, want := range map[int]string{10: test.uid, 11: ""} {
				require.NoError(t, os.Mkdir(filepath.Join(proc, strconv.Itoa(pid)), 0o755))
				text := fmt.Sprintf(test.proc, strings.TrimPrefix(test.pod, "memory")+"/cri-containerd-abc.scope")
				require.NoError(t, os.WriteFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"), []byte(text), 0o644))
				pod, err := Cgroups(c).PodOf(proc, pid)
				assert.Equal(t, want, pod)
				assert.Equal(t, want == "", err != nil, "%v", err)
			}
		})
	}
}

// Cgroups that a container makes below its own do not matter: one with the name of another pod is still the container's.
func TestContainersOwnCgroups(t *testing.T) {
	c := t.TempDir()
	put(t, c, "cgroup.controllers")
	put(t, c, "memory", 9)
	put(t, c, "kubepods/pod"+uid)
	put(t, c, "kubepods/pod"+uid+"/abc/init", 10, 11)
	put(t, c, "kubepods/pod"+uid+"/abc/kubepods/pod"+other, 12)
	require.NoError(t, os.Chown(filepath.Join(c, "kubepods/pod"+uid+"/abc"), 100000, 100000))
	got, err := Cgroups(c).Processes(uid)
	require.NoError(t, err)
	assert.ElementsMatch(t, []int{10, 11, 12}, got)
	_, err = Cgroups(c).Processes(other)
	assert.ErrorIs(t, err, ErrNoPod)
}

func TestCgroupsThatAreNotTheKubelets(t *testing.T) {
	for name, path := range map[string]string{
		"no root":               "v1user/pod" + uid,
		"top":                   "pod" + uid,
		"deep in a user's":      "user.slice/user-1000.slice/user@1000.service/kubepods/pod" + uid,
		"another machine's":     "machine.slice/docker-abc.scope/kubepods/pod" + uid,
		"another name":          "kubepods2/pod" + uid,
		"systemd's in cgroupfs": "kubepods/kubepods-pod" + under + ".slice",
		"wrong prefix":          "kubelet.slice/kubelet-kubepods.slice/kubepods-pod" + under + ".slice",
		"other class":           "kubepods/extra/pod" + uid,
	} {
		t.Run(name, func(t *testing.T) {
			c := t.TempDir()
			put(t, c, path, 10)
			_, err := Cgroups(c).Processes(uid)
			assert.ErrorIs(t, err, ErrNoPod)
		})
	}
	for _, wrong := range []string{"", "..", uid + "/..", "*", strings.ToUpper(uid)} {
		_, err := Cgroups(t.TempDir()).Processes(wrong)
		assert.ErrorContains(t, err, "is not the UID of a pod")
	}
}

// The owner of a cgroup above the pod's could have made the pod's cgroup: the error names the owner. The kubelet's
// own cgroup of the pod still counts.
func TestDelegatedCgroups(t *testing.T) {
	pod := "given/kubepods/burstable/pod" + uid
	for _, path := range []string{"given", "given/kubepods", "given/kubepods/burstable", pod} {
		c := t.TempDir()
		put(t, c, pod+"/abc", 10)
		require.NoError(t, os.Chown(filepath.Join(c, path), nobody, nobody))
		_, err := Cgroups(c).Processes(uid)
		assert.ErrorContains(t, err, path+" (owner 65534, mode 755) is not root's alone")
		require.NoError(t, os.Chown(filepath.Join(c, path), 0, nobody))
		require.NoError(t, os.Chmod(filepath.Join(c, path), 0o775))
		_, err = Cgroups(c).Processes(uid)
		assert.ErrorContains(t, err, path+" (owner 0, mode 775) is not root's alone")
		put(t, c, "kubepods/burstable/pod"+uid+"/abc", 11)
		got, err := Cgroups(c).Processes(uid)
		require.NoError(t, err)
		assert.Equal(t, []int{11}, got)
	}
}

const nobody = 65534

// realCgroups makes a folder in a hierarchy of this machine, and returns the hierarchy too.
func realCgroups(t *testing.T) (hierarchy, folder string) {
	t.Helper()
	for _, hierarchy := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		folder := filepath.Join(hierarchy, fmt.Sprintf("ringcap-test-%d", os.Getpid()))
		if unix.Statfs(hierarchy, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC && os.Mkdir(folder, 0o755) == nil {
			t.Cleanup(func() { removeCgroup(t, folder) })
			return hierarchy, folder
		}
	}
	t.Skip("there is no cgroup of version 2 in which this test could make one")
	return "", ""
}

// removeCgroup has patience with processes that have ended and are not quite gone.
func removeCgroup(t *testing.T, path string) {
	require.Eventually(t, func() bool { return unix.Rmdir(path) == nil }, 10*time.Second, 10*time.Millisecond, path)
}

// child starts a process of a user without rights in a cgroup that is made for it. From a given folder on, the cgroup
// belongs to the user.
func child(t *testing.T, folder, path, from string) int {
	t.Helper()
	parent := folder
	for _, name := range strings.Split(path, "/") {
		made := filepath.Join(parent, name)
		parent = made
		if os.Mkdir(made, 0o755) == nil {
			t.Cleanup(func() { removeCgroup(t, made) })
		}
		if from != "" && strings.HasPrefix(made, filepath.Join(folder, from)) {
			require.NoError(t, os.Chown(made, nobody, nobody))
			require.NoError(t, os.Chown(filepath.Join(made, "cgroup.procs"), nobody, nobody))
		}
	}
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
	})
	require.NoError(t, os.WriteFile(filepath.Join(parent, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0))
	return cmd.Process.Pid
}

// A user outside of any pod has a delegated cgroup. The user names a cgroup in it after the pod that has the queue.
func TestAProcessThatOnlyLooksLikeAPods(t *testing.T) {
	hierarchy, folder := realCgroups(t)
	access := Access{
		Allocations: kubelet(t), Proc: "/proc", Cgroups: Cgroups(hierarchy), UIDs: fakeUIDs{{"sensors", "a"}: {uid}}, Namespaces: NewNamespaces(),
	}
	access.Namespaces.Set(map[string]consumers.Rule{"ids": rule("sensors")})
	ask := func(pid int) error { return access.Allow(t.Context(), pid, capture.QueueID{Cluster: "ids"}) }

	named := child(t, folder, "user/pod"+uid, "user")
	assert.ErrorContains(t, ask(named), fmt.Sprintf("process %d: it runs in no pod: the kubelet has no cgroup of this pod", named))
	nested := child(t, folder, "kubepods/besteffort/pod"+uid+"/abc", "kubepods/besteffort")
	assert.ErrorContains(t, ask(nested), "kubepods/besteffort/pod"+uid+" (owner 65534")
	assert.ErrorContains(t, ask(named), "is not root's alone")

	inside := child(t, folder, "kubepods/burstable/pod"+uid+"/abc", "kubepods/burstable/pod"+uid+"/abc")
	assert.NoError(t, ask(inside))
	for _, pid := range []int{named, nested} {
		assert.ErrorContains(t, ask(pid), "it runs in no pod: the kubelet has not put it into the pod with UID "+uid)
	}
}
