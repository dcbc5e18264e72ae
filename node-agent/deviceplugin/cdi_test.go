// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// A container runtime finds a queue by its name and gives it to a container, as long as the resource is offered.
func TestQueuesAsContainerRuntimesKnowThem(t *testing.T) {
	k := startKubelet(t, t.TempDir())
	folder := filepath.Join(k.folder, "cdi")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	stale, foreign := filepath.Join(folder, "ringcap.io-stale.json"), filepath.Join(folder, "example.com-gpu.json")
	for _, file := range []string{stale, foreign} {
		require.NoError(t, os.WriteFile(file, []byte("{}"), 0o644))
	}
	m := startManager(t, k.folder)
	queues := &fakeQueues{}
	wanted := offer(queues, true, true)
	m.Set(wanted)
	k.next()
	assert.NoFileExists(t, stale, "of an earlier agent")
	assert.FileExists(t, foreign)

	container := inject(t, folder, "ringcap.io/queue=ids.1")
	require.Len(t, container.Linux.Devices, 1, "once")
	assert.Equal(t, "/dev/ringcap/ids/0", container.Linux.Devices[0].Path)
	require.Len(t, container.Linux.Resources.Devices, 1)
	assert.Equal(t, "rw", container.Linux.Resources.Devices[0].Access)
	require.Len(t, container.Mounts, 1)
	assert.Equal(t, "/run/ringcap/ids/0", container.Mounts[0].Destination)
	assert.Contains(t, container.Mounts[0].Options, "ro")
	assert.Equal(t, []string{"RINGCAP_UNREAD=skip", "RINGCAP_UNREAD_DEFAULT=take"}, container.Process.Env, "a pod's queue is its own through restarts, and so is its word")

	// What does not change is not asked for again.
	granted := queues.grants.Load()
	m.Set(offer(queues, true, false))
	k.next()
	assert.Equal(t, granted, queues.grants.Load())

	// What somebody removes or writes over comes back.
	file := filepath.Join(folder, "ringcap.io-ids.json")
	described, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, drift := range []func() error{
		func() error { return os.Remove(file) }, func() error { return os.WriteFile(file, []byte("{}"), 0o644) },
	} {
		require.NoError(t, drift())
		m.Set(offer(queues, true, false))
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			now, err := os.ReadFile(file)
			assert.NoError(c, err)
			assert.Equal(c, string(described), string(now))
		}, time.Minute, 10*time.Millisecond)
	}

	ids := wanted["ids"]
	ids.Engine, ids.Mounts = v1.EngineEBPF, []capture.PathPair{{Host: "/host/lib", Container: "/lib"}}
	m.Set(map[string]Resource{"ids": ids})
	k.next()
	assert.Len(t, inject(t, folder, "ringcap.io/queue=ids.0").Mounts, 2)

	m.Set(nil)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		require.NoError(c, err)
		assert.Equal(c, []string{foreign}, files)
	}, time.Minute, 10*time.Millisecond)
}

// inject does what a container runtime does, with what the kubelet gave beside the name.
func inject(t *testing.T, folder, device string) oci.Spec {
	t.Helper()
	cache, err := cdi.NewCache(cdi.WithSpecDirs(folder), cdi.WithAutoRefresh(false))
	require.NoError(t, err)
	container := oci.Spec{
		Process: &oci.Process{Env: []string{"RINGCAP_UNREAD=skip"}}, // its pod's own
		Linux:   &oci.Linux{Devices: []oci.LinuxDevice{{Path: "/dev/ringcap/ids/0", Type: "c", Major: 1, Minor: 3}}},
		Mounts:  []oci.Mount{{Source: "/host/folder", Destination: "/run/ringcap/ids/0", Options: []string{"ro", "rbind"}}},
	}
	_, err = cache.InjectDevices(&container, device)
	require.NoError(t, err, "%v", cache.GetErrors())
	return container
}

// A queue that container runtimes cannot know is not offered: they would not find what Allocate names.
func TestAResourceIsOfferedWhenItIsDescribed(t *testing.T) {
	k := startKubelet(t, t.TempDir())
	require.NoError(t, os.WriteFile(filepath.Join(k.folder, "cdi"), nil, 0o644))
	m := startManager(t, k.folder)
	m.Set(offer(&fakeQueues{}, true))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.ErrorContains(c, m.Err(), "describe the queues of ids to container runtimes")
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, os.Remove(filepath.Join(k.folder, "cdi")))
	assert.Equal(t, []string{"0 Healthy"}, k.next().health)
}
