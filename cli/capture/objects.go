// SPDX-License-Identifier: Apache-2.0

// Package capture takes a ring's packets from all its nodes home, as one time-ordered pcapng.
//
// It makes a ring, if the packets are those of pods, a Cluster of one queue over the ring, and on each node a pod without any privilege that is given that queue; for who may make
// neither ring nor Cluster it makes a PodCapture instead of the two. In the pods it runs rcstream by pods/exec, merges what they write, and removes all of it in the end.
package capture

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/doctor"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Plan is what is made for a capture.
type Plan struct {
	// Name of the Cluster, and the start of the pods' names: the first that is free, which Start finds.
	Name string
	// ID tells what this capture makes from what others do.
	ID   string
	Ring string
	// Made is the spec of a ring that is made for the capture, nil for one that is there.
	Made *v1.CaptureRingSpec
	// Own is the spec of a PodCapture that is made instead of ring and Cluster, else nil; Name is its CaptureRing's then, which Start
	// learns.
	Own *v1.PodCaptureSpec
	// Pods is how many it has to capture.
	Pods  int32
	Nodes []Node
	// Namespace of the pods.
	Namespace string
	// Image has rcstream in it.
	Image string
	// Filter is a pcap-filter(7) expression, empty for everything.
	Filter string
	// Slots of the queue on each node.
	Slots int32
	// Deadline after which the pods end by themselves, should nobody be there to remove them.
	Deadline time.Duration
}

// Node is where packets come from.
type Node struct {
	Name       string
	Interfaces []string
}

// names are how many captures there can be at once. A kubelet never forgets the name of a resource: names that are used again
// leave few of them on a node.
const names = 8

func name(i int) string { return fmt.Sprintf("ringcap-cli-%d", i) }

func (p Plan) labels() map[string]string {
	return map[string]string{doctor.TemporaryLabel: p.ID, "app.kubernetes.io/managed-by": "ringcap-cli"}
}

// MadeRing is the ring that is made, nil if none is.
func (p Plan) MadeRing() *v1.CaptureRing {
	if p.Made == nil {
		return nil
	}
	ring := &v1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: p.Ring, Labels: p.labels()}, Spec: *p.Made}
	ring.Spec.Consumers = p.consumers()
	return ring
}

// PodCapture is the one that is made, nil if none is.
func (p Plan) PodCapture() *v1.PodCapture {
	if p.Own == nil {
		return nil
	}
	return &v1.PodCapture{ObjectMeta: metav1.ObjectMeta{GenerateName: "ringcap-cli-", Namespace: p.Namespace, Labels: p.labels()}, Spec: *p.Own}
}

// Cluster is the set of queues.
func (p Plan) Cluster() *v1.Cluster {
	return &v1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Labels: p.labels()},
		Spec:       v1.ClusterSpec{Rings: []string{p.Ring}, Queues: 1, QueueSettings: v1.QueueSettings{Slots: p.Slots, Consumers: p.consumers()}},
	}
}

// consumers are the capture's own pods.
func (p Plan) consumers() *v1.Consumers { return &v1.Consumers{Namespaces: []string{p.Namespace}} }

// container of the pods.
const container = "rcstream"

// Command is what is run in a pod.
func (p Plan) Command() []string {
	command := []string{"/usr/bin/rcstream"}
	if p.Filter != "" {
		command = append(command, "--filter", p.Filter)
	}
	return append(command, "--", p.Name)
}

// Pod is that of a node. It belongs to the Cluster or PodCapture, and goes with it.
func (p Plan) Pod(node Node, owner client.Object) *corev1.Pod {
	kind := "Cluster"
	if p.Own != nil {
		kind = "PodCapture"
	}
	deadline := int64(p.Deadline.Seconds())
	yes, no, nobody := true, false, int64(65534)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: p.Name + "-", Namespace: p.Namespace, Labels: p.labels(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1.GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
			}},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: &deadline,
			TerminationGracePeriodSeconds: new(int64), AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			Affinity: onNode(node.Name), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &nobody, RunAsGroup: &nobody,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: container, Image: p.Image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"/usr/bin/rcstream", "--idle", resource.NewQuantity(deadline, resource.DecimalSI).String()},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceName(v1.ResourcePrefix + p.Name): resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("128Mi")},
				},
			}},
		},
	}
}

// onNode leaves it to the scheduler to wait until the node has the queue.
func onNode(name string) *corev1.Affinity {
	field := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{field}}},
		},
	}}
}
