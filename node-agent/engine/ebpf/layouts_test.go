// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/safchain/ethtool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// anotherLayout turns the pins into those of an agent with another layout.
func (l *lab) anotherLayout(name string) {
	l.t.Helper()
	require.NoError(l.t, os.Rename(filepath.Join(l.pinDir, layout), filepath.Join(l.pinDir, name)))
}

// leaveTags lets "tapped" leave VLAN tags in frames, which XDP needs.
func (l *lab) leaveTags() {
	l.t.Helper()
	tool, err := ethtool.NewEthtool()
	require.NoError(l.t, err)
	defer tool.Close()
	require.NoError(l.t, tool.Change(l.tapped.Attrs().Name, map[string]bool{"rx-vlan-hw-parse": false}))
}

// The first plan removes what an agent with another layout left: its taps, its pins and the discipline that it added.
// From then on the new queues account for each packet. A consumer of an old queue is told to attach again.
func TestOtherLayoutIsRetired(t *testing.T) {
	for _, mode := range []string{"tcx", "clsact", "xdp"} {
		for _, name := range []string{"v2", "v99"} {
			t.Run(mode+" "+name, func(t *testing.T) {
				l := newLab(t)
				how := l.attachedBy(mode)
				plan := l.plan(1)
				if mode == "xdp" { // an interface has one program only
					plan.Rings[0].Mode = 1
					l.leaveTags()
				}
				older := l.engine(how)
				l.apply(older, plan)
				taps := l.taps()
				c := l.consume("mirror", 0)
				l.sendAll(older, "mirror", 10, func(n int) []byte { return frame(n, 60) })
				require.NoError(t, older.Close())
				l.anotherLayout(name)

				e := l.engine(how)
				l.send(frame(10, 60))
				require.Len(t, l.collect(c, 11), 11, "until the first plan they go on")
				l.apply(e, plan)
				require.NoDirExists(t, filepath.Join(l.pinDir, name))
				require.Equal(t, len(taps), len(l.taps()))
				require.ErrorIs(t, comeBack(l, c), unix.ESTALE)
				asOlder := func(known uint32) error { // as one that reads the ring buffers of layout v2
					_, _, _, err := request(socketPath(l.runDir, "mirror", 0), encodeRequest(handoverRequest{
						Magic: protocolMagic, ABI: 2, ABIMin: 1, MapID: known,
					}))
					return err
				}
				require.ErrorIs(t, asOlder(c.reply.MapID), unix.ESTALE)
				require.ErrorIs(t, asOlder(0), unix.EPROTO)
				require.ErrorContains(t, asOlder(0), "consumer 1 to 2, agent 3 to 3: update libringcap")

				next := l.consume("mirror", 0)
				l.sendAll(e, "mirror", 20, func(n int) []byte { return frame(n, 60) })
				require.Len(t, l.collect(next, 20), 20)
				observed := l.observe(e)
				require.Equal(t, uint64(20), observed.Rings["mirror"].Stats.Seen)
				require.Equal(t, uint64(20), observed.Clusters["mirror"].Queues[0].Delivered)
				more, err := c.drain()
				require.NoError(t, err)
				require.Empty(t, more, "the old queue gets nothing any more")

				next.detach()
				l.detached(e, "mirror", 0)
				l.apply(e, capture.Plan{})
				require.Empty(t, l.taps())
				require.NotEqual(t, "clsact", l.qdisc(), "who added it was the older one")
				require.Equal(t, []string{filepath.Join(l.pinDir, layout)}, glob(t, filepath.Join(l.pinDir, "*")))
			})
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return found
}
