// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The numbers are those of the interface's header.
func TestVersionsAreTheHeaders(t *testing.T) {
	header, err := os.ReadFile("../../../kmod/include/uapi/linux/ringcap.h")
	require.NoError(t, err)
	require.Contains(t, string(header), fmt.Sprintf("#define RINGCAP_ABI\t\t%d\n", protocolABI))
	require.Contains(t, string(header), fmt.Sprintf("#define RINGCAP_HANDOVER_ABI_MIN %d\t", protocolABIMin))
}

// An older and a newer side speak the newest version that they have in common. If there is none, the refusal names
// the versions of each side and the side to update.
func TestVersionsMeet(t *testing.T) {
	l := newLab(t)
	e := l.engine(func(o *Options) { o.versions = versions{3, 5} })
	l.apply(e, l.plan(1))
	path := socketPath(l.runDir, "mirror", 0)
	for _, c := range []struct {
		newest, oldest, common uint32
		refusal                string
	}{
		{newest: 3, common: 3}, // one that does not send its oldest version
		{newest: 4, oldest: 1, common: 4},
		{newest: 9, oldest: 5, common: 5},
		{newest: 2, refusal: "consumer 2 to 2, agent 3 to 5: update libringcap"},
		{newest: 9, oldest: 6, refusal: "consumer 6 to 9, agent 3 to 5: upgrade ringcap on this node"},
		{newest: 3, oldest: 9, refusal: "consumer 9 to 3, agent 3 to 5"},
		{newest: 0, refusal: "consumer 0 to 0, agent 3 to 5: update libringcap"},
	} {
		conn, reply, fds, err := request(path, encodeRequest(handoverRequest{Magic: protocolMagic, ABI: c.newest, ABIMin: c.oldest}))
		if c.refusal != "" {
			require.ErrorIs(t, err, unix.EPROTO)
			require.ErrorContains(t, err, c.refusal)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.common, reply.ABI)
		require.NoError(t, conn.Close())
		for _, fd := range fds {
			require.NoError(t, unix.Close(fd))
		}
		l.detached(e, "mirror", 0)
	}
}

// A consumer of a version that the agent does not speak learns that its queue is gone. With EPROTO it would ask again
// for ever.
func TestStaleComesBeforeTheVersions(t *testing.T) {
	l := newLab(t)
	l.apply(l.engine(func(o *Options) { o.versions = versions{3, 5} }), l.plan(1))
	for _, c := range []struct {
		known uint32
		want  unix.Errno
	}{{4711, unix.ESTALE}, {0, unix.EPROTO}} {
		_, _, _, err := request(socketPath(l.runDir, "mirror", 0), encodeRequest(handoverRequest{
			Magic: protocolMagic, ABI: 2, ABIMin: 2, MapID: c.known,
		}))
		require.ErrorIs(t, err, c.want)
	}
}

// After an upgrade to an agent of a newer version, running consumers stay attached as long as the agent speaks their
// version.
func TestVersionsOverAnUpgrade(t *testing.T) {
	l := newLab(t)
	plan := l.plan(1)
	first := l.engine(func(o *Options) { o.versions = versions{3, 3} })
	l.apply(first, plan)
	c := l.consume("mirror", 0)
	require.NoError(t, first.Close())
	second := l.engine(func(o *Options) { o.versions = versions{3, 4} })
	l.apply(second, plan)
	require.NoError(t, comeBack(l, c))
	require.True(t, l.observe(second).Clusters["mirror"].Queues[0].Attached)
	require.NoError(t, second.Close())
	third := l.engine(func(o *Options) { o.versions = versions{4, 5} })
	l.apply(third, plan)
	require.ErrorContains(t, comeBack(l, c), "consumer 3 to 3, agent 4 to 5: update libringcap")
}
