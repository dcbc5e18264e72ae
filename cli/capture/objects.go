// SPDX-License-Identifier: Apache-2.0

// Package capture streams a ring's packets from all its nodes to the user, as one time-ordered pcapng.
//
// It creates a ring if the packets are those of pods, a Cluster of one queue over the ring, and on each node an unprivileged pod
// that gets the queue. For users who may create neither, it creates a PodCapture instead. In the pods it runs rcstream through
// pods/exec, merges the streams, and deletes all objects in the end.
package capture

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/doctor"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Plan describes the objects of a capture.
type Plan struct {
	// Name of the Cluster, and prefix of the pods' names: the first name that is free, which Start finds.
	Name string
	// ID distinguishes the objects of this capture from those of others.
	ID   string
	Ring string
	// RingUID is the UID of an existing ring.
	RingUID types.UID
	// Made is the spec of the ring to create, nil to use an existing one.
	Made *v1.CaptureRingSpec
	// Own is the spec of the PodCapture to create instead of ring and Cluster, else nil; Start then sets Name to the name of its
	// CaptureRing.
	Own *v1.PodCaptureSpec
	// Pods is the number of pods to capture.
	Pods  int32
	Nodes []Node
	// Namespace of the pods.
	Namespace string
	// Image contains rcstream.
	Image string
	// PullSecrets are for the image, in the pods' namespace.
	PullSecrets []corev1.LocalObjectReference
	// Filter is a pcap-filter(7) expression, empty for everything.
	Filter string
	// Slots of the queue on each node.
	Slots int32
	// Deadline after which the pods end if nobody deletes them.
	Deadline time.Duration
}

// Node is a node to capture on.
type Node struct {
	Name       string
	Interfaces []string
}

// names is the maximum number of captures at a time. A kubelet never forgets the name of a resource: names are used again, so
// that a node sees few of them.
const names = 8

func name(i int) string { return fmt.Sprintf("ringcap-cli-%d", i) }

func (p Plan) labels() map[string]string {
	return map[string]string{doctor.TemporaryLabel: p.ID, "app.kubernetes.io/managed-by": "ringcap-cli"}
}

// MadeRing returns the ring to create, nil for none.
func (p Plan) MadeRing() *v1.CaptureRing {
	if p.Made == nil {
		return nil
	}
	ring := &v1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: p.Ring, Labels: p.labels()}, Spec: *p.Made}
	ring.Spec.Consumers = p.consumers()
	return ring
}

// PodCapture returns the PodCapture to create, nil for none.
func (p Plan) PodCapture() *v1.PodCapture {
	if p.Own == nil {
		return nil
	}
	return &v1.PodCapture{ObjectMeta: metav1.ObjectMeta{GenerateName: "ringcap-cli-", Namespace: p.Namespace, Labels: p.labels()}, Spec: *p.Own}
}

// Cluster returns the Cluster to create.
func (p Plan) Cluster() *v1.Cluster {
	return &v1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Labels: p.labels()},
		Spec:       v1.ClusterSpec{Rings: []string{p.Ring}, Queues: 1, QueueSettings: v1.QueueSettings{Slots: p.Slots, Consumers: p.consumers()}},
	}
}

// consumers permits the capture's own pods.
func (p Plan) consumers() *v1.Consumers { return &v1.Consumers{Namespaces: []string{p.Namespace}} }

// container of the pods.
const container = "rcstream"

// Command is the command to run in a pod.
func (p Plan) Command() []string {
	command := []string{"/usr/bin/rcstream"}
	if p.Filter != "" {
		command = append(command, "--filter", p.Filter)
	}
	return append(command, "--", p.Name)
}

// Pod returns the pod for a node. The Cluster or PodCapture owns it, so they are deleted together.
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
			ImagePullSecrets: p.PullSecrets,
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

// onNode uses affinity: the scheduler then waits until the node has the queue.
func onNode(name string) *corev1.Affinity {
	field := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{field}}},
		},
	}}
}
