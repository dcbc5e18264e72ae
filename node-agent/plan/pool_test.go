// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const vfRing = `{interfaces: [{resourceName: a.com/vf}]}`

// poolFacts returns the facts of a node with a pool of three functions. One is here, one is in a pod with its tap,
// and one has a driver that makes no interface. A fourth is not in the pool.
func poolFacts() Facts {
	f := facts()
	here := Interface{Name: "vf0", Index: 20, RxQueues: 2, Driver: "igbvf", PCIAddress: "0000:04:10.0"}
	away := Interface{Name: "vf1", Index: 21, RxQueues: 2, Driver: "igbvf", PCIAddress: "0000:04:10.2"}
	other := Interface{Name: "vf3", Index: 23, RxQueues: 2, Driver: "igbvf", PCIAddress: "0000:04:10.6"}
	f.Interfaces = append(f.Interfaces, here, other)
	f.Pools = map[string][]PoolDevice{"a.com/vf": {
		{PCIAddress: here.PCIAddress}, {PCIAddress: away.PCIAddress, Pod: "n/p"}, {PCIAddress: "0000:04:10.4"},
	}}
	f.Seen = map[string]Function{here.PCIAddress: {here, "a.com/vf"}, away.PCIAddress: {away, "a.com/vf"}}
	f.Taps = map[string][]capture.Tap{"mirror": {{Index: 20, Direction: capture.Receive, Follows: true}, {Index: 21, Direction: capture.Receive, Follows: true, Away: true}}}
	return f
}

// indexes returns the indexes of the taps. None of them is marked as away, because only the engine finds that out.
func indexes(p capture.Plan) (all []int) {
	for _, tap := range p.Rings[0].Taps {
		if !tap.Away {
			all = append(all, tap.Index)
		}
	}
	return all
}

func TestPoolsAreTapped(t *testing.T) {
	verdict, p := makeRing(t, vfRing, poolFacts())
	assert.True(t, verdict.Ready(), verdict.Message)
	assert.Equal(t, []string{"vf0", "vf1"}, verdict.Interfaces)
	assert.Equal(t, []int{20, 21}, indexes(p))
	assert.Equal(t, map[string]string{"vf1": "n/p"}, verdict.Pods)
	assert.Equal(t, map[string]bool{"vf1": true}, verdict.Away)
	require.Len(t, verdict.PodsNotTapped, 1)
	assert.Contains(t, verdict.PodsNotTapped[0], "0000:04:10.4 has no interface")

	verdict, p = makeRing(t, `{interfaces: [{resourceName: a.com/vf, name: vf1}]}`, poolFacts())
	assert.True(t, verdict.Ready(), verdict.Message)
	assert.Equal(t, []int{21}, indexes(p))
}

// A function may leave after the taps were looked at, has the name of its free days while a CNI plugin renames it, and is
// tapped once though two selectors want it.
func TestFunctionsOnTheirWay(t *testing.T) {
	f := poolFacts()
	f.Taps["mirror"][1].Away = false
	f.Interfaces[len(f.Interfaces)-2].Name = "temp_20"
	_, p := makeRing(t, `{interfaces: [{resourceName: a.com/vf, name: vf*}, {resourceName: a.com/vf}]}`, f)
	assert.Equal(t, []int{20, 21}, indexes(p))
	for _, tap := range p.Rings[0].Taps {
		assert.True(t, tap.Follows)
	}
}

// Those that are too many are refused: to leave out the ones in pods would end what they can't have again.
func TestPoolsThatAreTooLarge(t *testing.T) {
	f := poolFacts()
	for i := range maxTaps {
		address := fmt.Sprintf("0000:05:00.%d", i)
		f.Interfaces = append(f.Interfaces, Interface{Name: fmt.Sprint("more", i), Index: 100 + i, PCIAddress: address})
		f.Pools["a.com/vf"] = append(f.Pools["a.com/vf"], PoolDevice{PCIAddress: address, Pod: "n/q"})
	}
	verdict, _ := makeRing(t, vfRing, f)
	assert.Equal(t, v1.ReasonUnsupported, verdict.Reason)
	assert.Contains(t, verdict.Message, "matches 66 interfaces")
}

// A function that was in its pod before the ring was there cannot be tapped, nor can one if another interface has its
// index by now. The pod is named.
func TestFunctionsThatCannotBeTapped(t *testing.T) {
	late, taken := poolFacts(), poolFacts()
	late.Taps = nil
	taken.Interfaces = append(taken.Interfaces, Interface{Name: "new", Index: 21})
	for name, f := range map[string]Facts{"late": late, "taken": taken} {
		verdict, p := makeRing(t, vfRing, f)
		assert.True(t, verdict.Planned, name)
		assert.Equal(t, []int{20}, indexes(p), name)
		assert.Equal(t, v1.ReasonPodNotTapped, verdict.Reason, name)
		assert.Contains(t, verdict.Message, "spec.interfaces[].resourceName: n/p: it has had 0000:04:10.2", name)
	}
}

// While the kubelet, the plugin or the plugin's word on one function is missing, taps stay.
func TestPoolsThatAreNotKnown(t *testing.T) {
	mute, gone, unlisted := poolFacts(), poolFacts(), poolFacts()
	mute.Pools, mute.PoolsUnknown = nil, "no answer"
	gone.Pools = nil
	unlisted.Pools = map[string][]PoolDevice{"a.com/vf": {{PCIAddress: "0000:04:10.0"}}}
	back := poolFacts()
	back.Pools, back.Interfaces = nil, append(back.Interfaces, back.Seen["0000:04:10.2"].Interface)
	for want, f := range map[string]Facts{"no answer": mute, "no device of a.com/vf": gone, "no device of": back, "": unlisted} {
		verdict, p := makeRing(t, vfRing, f)
		assert.Equal(t, []int{20, 21}, indexes(p), want)
		assert.Contains(t, verdict.Message, want)
		assert.Equal(t, want == "", verdict.Ready())
	}
	none := poolFacts()
	none.Pools, none.Seen = map[string][]PoolDevice{"b.com/gpu": {{PCIAddress: "x"}}}, nil
	verdict, _ := makeRing(t, vfRing, none)
	assert.Equal(t, v1.ReasonInterfaceAbsent, verdict.Reason)
	assert.Contains(t, verdict.Message, "device plugins advertise b.com/gpu")
}

func TestWhatDoesNotGoWithPools(t *testing.T) {
	pool := `interfaces: [{resourceName: a.com/vf}]`
	for text, want := range map[string]string{
		`transparentMode: 2`:                   "spec.transparentMode 2",
		`queues: PerRxQueue, balance: RxQueue`: "give a number",
		`engine: EBPF`:                         "spec.interfaces[].resourceName: engine EBPF does not do it",
	} {
		verdict, _ := makeRing(t, "{"+pool+", "+text+"}", poolFacts())
		assert.Equal(t, v1.ReasonUnsupported, verdict.Reason, text)
		assert.Contains(t, verdict.Message, want)
	}
	alone := poolFacts()
	alone.NoPods = true
	verdict, _ := makeRing(t, "{"+pool+"}", alone)
	assert.Contains(t, verdict.Message, "without Kubernetes")
}
