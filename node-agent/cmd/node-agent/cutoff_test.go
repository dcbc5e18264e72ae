// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// fakeServer has one NodeCapture, takes its status, and notes events and when it was asked for anything.
type fakeServer struct {
	mu     sync.Mutex
	object v1.NodeCapture
	events []string
	asked  []time.Time
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const all, one = "/apis/ringcap.io/v1alpha1/nodecaptures", "/apis/ringcap.io/v1alpha1/nodecaptures/n1"
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, time.Now())
	w.Header().Set("Content-Type", "application/json")
	switch query := r.URL.Query(); {
	case r.URL.Path == all && query.Has("watch"):
		s.watch(w, r, query.Get("resourceVersion"))
	case r.URL.Path == all:
		_ = json.NewEncoder(w).Encode(&v1.NodeCaptureList{
			TypeMeta: metav1.TypeMeta{APIVersion: "ringcap.io/v1alpha1", Kind: "NodeCaptureList"},
			ListMeta: metav1.ListMeta{ResourceVersion: s.object.ResourceVersion}, Items: []v1.NodeCapture{s.object},
		})
	case r.URL.Path == one:
		_ = json.NewEncoder(w).Encode(&s.object)
	case r.URL.Path == one+"/status" && r.Method == http.MethodPatch:
		s.patch(w, r)
	case strings.HasSuffix(r.URL.Path, "/events") && r.Method == http.MethodPost:
		var event eventsv1.Event
		body, _ := io.ReadAll(r.Body)
		_, _, _ = clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, &event)
		s.events = append(s.events, event.Reason)
		_ = json.NewEncoder(w).Encode(&event)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// patch takes a merge patch of the status, to the object as it is now.
func (s *fakeServer) patch(w http.ResponseWriter, r *http.Request) {
	var patch struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Status   map[string]any    `json:"status"`
	}
	status := map[string]any{}
	text, _ := json.Marshal(s.object.Status)
	if err := errors.Join(json.NewDecoder(r.Body).Decode(&patch), json.Unmarshal(text, &status)); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if patch.Metadata.ResourceVersion != s.object.ResourceVersion {
		conflict := apierrors.NewConflict(v1.GroupVersion.WithResource("nodecaptures").GroupResource(), "n1", errors.New("it changed")).Status()
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(&conflict)
		return
	}
	for field, value := range patch.Status {
		if status[field] = value; value == nil {
			delete(status, field)
		}
	}
	text, _ = json.Marshal(status)
	s.object.Status = v1.NodeCaptureStatus{}
	_ = json.Unmarshal(text, &s.object.Status)
	s.written()
	_ = json.NewEncoder(w).Encode(&s.object)
}

// written gives the object another version.
func (s *fakeServer) written() {
	version, _ := strconv.Atoi(s.object.ResourceVersion)
	s.object.ResourceVersion = strconv.Itoa(version + 1)
}

// watch streams the object whenever it has another version. The lock is held but for the waiting.
func (s *fakeServer) watch(w http.ResponseWriter, r *http.Request, version string) {
	if r.URL.Query().Has("sendInitialEvents") {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.(http.Flusher).Flush()
	for r.Context().Err() == nil {
		if s.object.ResourceVersion != version {
			version = s.object.ResourceVersion
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": &s.object})
			w.(http.Flusher).Flush()
		}
		s.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		s.mu.Lock()
	}
}

// edit changes the only ring.
func (s *fakeServer) edit(change func(*v1.CaptureRingSpec)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.object.Spec.Rings[0].Spec)
	s.object.Generation++
	s.written()
}

// ring is what the node has said of the ring as it is asked for now; false while it has not.
func (s *fakeServer) ring() (v1.NodeRingStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object.Status.AppliedGeneration != s.object.Generation || len(s.object.Status.Rings) == 0 {
		return v1.NodeRingStatus{}, false
	}
	return s.object.Status.Rings[0], true
}

// silence is the longest time since then in which nobody asked.
func (s *fakeServer) silence(since time.Time) (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range append(slices.Clone(s.asked), time.Now()) {
		if at.After(since) {
			longest, since = max(longest, at.Sub(since)), at
		}
	}
	return longest
}

/*
 * A node that reaches the API server only by an interface that the agent captures from:
 *
 *	+------- the world -------+          +--------- the machine ---------+
 *	|  API server  10.77.0.1  | == veth ==|  eth0 10.77.0.2   node-agent  |
 *	+-------------------------+          +--------------------------------+
 */
type clusterNode struct {
	*machine
	api    *fakeServer
	server string
}

func newClusterNode(t *testing.T) clusterNode {
	n := clusterNode{machine: newMachine(t), server: "10.77.0.1:6443", api: &fakeServer{}}
	n.api.object = v1.NodeCapture{
		TypeMeta:   metav1.TypeMeta{APIVersion: "ringcap.io/v1alpha1", Kind: "NodeCapture"},
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", Generation: 1, ResourceVersion: "1"},
		Spec: v1.NodeCaptureSpec{Rings: []v1.NodeRing{{Name: "own", UID: "u2", Spec: v1.CaptureRingSpec{
			Interfaces: []v1.InterfaceSelector{{Name: "eth0"}}, Engine: v1.EngineEBPF, XDP: v1.XDPGenericAllowed, Queues: v1.Queues(1),
		}}}},
	}
	require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "world0"}))
	for name, address := range map[string]string{"lo": "127.0.0.1/8", "eth0": "10.77.0.2/24"} {
		giveAddress(t, name, address)
	}
	n.world()
	for _, folder := range []string{"kubelet/device-plugins", "cdi"} {
		require.NoError(t, os.MkdirAll(n.path(folder), 0o755))
	}
	require.NoError(t, os.WriteFile(n.path("kubeconfig"), []byte(fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://%s"}}]
users: [{name: u, user: {}}]
`, n.server)), 0o644))
	return n
}

// giveAddress gives an interface an address, unless it has that, and sets it up.
func giveAddress(t *testing.T, name, text string) {
	t.Helper()
	link, err := netlink.LinkByName(name)
	require.NoError(t, err)
	address, err := netlink.ParseAddr(text)
	require.NoError(t, err)
	require.NoError(t, netlink.AddrReplace(link, address))
	require.NoError(t, netlink.LinkSetUp(link))
}

// world is where the other end of eth0 is, with the API server.
func (n clusterNode) world() {
	own, err := netns.Get()
	require.NoError(n.t, err)
	defer own.Close()
	peer, err := netlink.LinkByName("world0")
	require.NoError(n.t, err)
	world, err := netns.New()
	require.NoError(n.t, err)
	n.t.Cleanup(func() { world.Close() })
	require.NoError(n.t, netns.Set(own))
	require.NoError(n.t, netlink.LinkSetNsFd(peer, int(world)))
	require.NoError(n.t, netns.Set(world))
	giveAddress(n.t, "world0", "10.77.0.1/24")
	listener, err := net.Listen("tcp", n.server)
	require.NoError(n.t, netns.Set(own))
	require.NoError(n.t, err)
	server := &http.Server{Handler: n.api}
	go func() { _ = server.Serve(listener) }()
	n.t.Cleanup(func() { server.Close() })
}

func (n clusterNode) agent() *process {
	command := exec.Command("/proc/self/exe", "agent", "--node-name", "n1", "--kubeconfig", n.path("kubeconfig"), "--cut-off-after", "10s",
		"--kubelet-dir", n.path("kubelet"), "--cdi-dir", n.path("cdi"), "--run-dir", n.path("run"), "--bpffs", n.path("bpf"),
		"--metrics-address", "127.0.0.1:0")
	command.Env = append(os.Environ(), asAgent+"=1")
	return n.start("agent", command)
}

// taken reports whether the machine's stack is without eth0's packets.
func (n clusterNode) taken() bool {
	link, err := netlink.LinkByName("eth0")
	require.NoError(n.t, err)
	return link.Attrs().Xdp != nil && link.Attrs().Xdp.Attached
}

// isTaken waits, in the machine's namespace, until they are taken.
func (n clusterNode) isTaken() {
	n.t.Helper()
	for end := time.Now().Add(n.timeout); !n.taken(); time.Sleep(10 * time.Millisecond) {
		status, _ := n.api.ring()
		require.True(n.t, time.Now().Before(end), "eth0's packets go on to the stack: %s %s", status.Reason, status.Message)
	}
}

// message waits until the ring has this reason for its present spec.
func (n clusterNode) message(reason string) v1.NodeRingStatus {
	n.t.Helper()
	var ring v1.NodeRingStatus
	require.Eventually(n.t, func() bool {
		status, known := n.api.ring()
		ring = status
		return known && status.Reason == reason
	}, n.timeout, 50*time.Millisecond, reason)
	return ring
}

// A ring takes all packets of the interface by which the agent reaches the API server. It is refused; where it is
// allowed the node is cut off, comes back by itself, and stays so: also when the agent is started again, or is killed
// while it is cut off.
func TestANodeThatIsCutOffComesBack(t *testing.T) {
	n := newClusterNode(t)
	agent := n.agent()
	n.message("")
	mode := v1.TransparentModeRingOnly
	n.api.edit(func(s *v1.CaptureRingSpec) { s.TransparentMode, s.NIC.VLANOffload = &mode, v1.VLANOffloadDisable })
	refused := n.message(v1.ReasonNodeTrafficRefused)
	assert.Contains(t, refused.Message, "eth0 has the address 10.77.0.2/24")
	assert.Contains(t, refused.Message, "until then it stays as it was before the change")
	assert.False(t, n.taken())

	began := time.Now()
	n.api.edit(func(s *v1.CaptureRingSpec) { s.NodeTraffic = v1.NodeTrafficAllow })
	n.isTaken()
	lost := n.message(v1.ReasonNodeCutOff)
	assert.Contains(t, lost.Message, "spec.nic.vlanOffload Disable, spec.transparentMode 2 on eth0: the API server could not be reached for 10s")
	assert.False(t, n.taken())
	silence := n.api.silence(began)
	t.Logf("The node was cut off for %s, and back after %s.", silence.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	assert.Greater(t, silence, 8*time.Second, "it was cut off")
	assert.Less(t, silence, n.timeout)
	require.Eventually(t, func() bool {
		n.api.mu.Lock()
		defer n.api.mu.Unlock()
		return slices.Contains(n.api.events, v1.ReasonNodeCutOff)
	}, n.timeout, 50*time.Millisecond, "an event reports it")

	agent.interrupt(os.Interrupt)
	n.api.mu.Lock()
	n.api.object.Status = v1.NodeCaptureStatus{}
	n.api.mu.Unlock()
	agent = n.agent()
	n.message(v1.ReasonNodeCutOff)
	assert.False(t, n.taken())

	n.api.edit(func(s *v1.CaptureRingSpec) { s.NIC.Driver.LinkTimeout = &metav1.Duration{Duration: time.Minute} })
	n.isTaken()
	agent.kill()
	n.agent()
	n.message(v1.ReasonNodeCutOff)
	assert.False(t, n.taken())
}
