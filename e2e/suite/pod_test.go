// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The pods that cases make.

// imageOf is an image of out/images by its content, for a manifest.
func (c *Case) imageOf(name string) string {
	return "ringcap.local/" + name + ":" + c.provision("image_tag", name)
}

// consumer is the spec of a pod without any privilege, whose program, by a command in YAML, reads a queue of a ring or cluster and writes
// into /captures.
func consumer(image, command, resource string) string {
	return fmt.Sprintf(`{terminationGracePeriodSeconds: 1, automountServiceAccountToken: false,
      securityContext: {runAsNonRoot: true, runAsUser: 65534, fsGroup: 65534, seccompProfile: {type: RuntimeDefault}},
      volumes: [{name: captures, emptyDir: {}}],
      containers: [{name: consumer, image: %q, command: %s, resources: {limits: {ringcap.io/%s: 1}},
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}},
        volumeMounts: [{name: captures, mountPath: /captures}]}]}`, image, command, resource)
}

// idle is the spec of a pod of the probe's image, root in its container, that sees the node's /run/ringcap. It is given a queue of a ring
// or cluster, or none for "".
func (c *Case) idle(resource string) string {
	limits := ""
	if resource != "" {
		limits = "ringcap.io/" + resource + ": 1"
	}
	return fmt.Sprintf(`{terminationGracePeriodSeconds: 1, automountServiceAccountToken: false,
      volumes: [{name: run, hostPath: {path: /run/ringcap}}],
      containers: [{name: probe, image: %q, command: [sleep, infinity], resources: {limits: {%s}},
        volumeMounts: [{name: run, mountPath: /host-run}]}]}`, c.imageOf("probe"), limits)
}

// pod is a pod of the suite's namespace.
func (c *Case) pod(name, spec string) *unstructured.Unstructured {
	return c.apply(fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %[1]s, namespace: %[2]s, labels: {app: %[1]s}}, spec: %[3]s}", name, pods, spec))
}

// onEach is such a pod on each node, once they run.
func (c *Case) onEach(name, spec string) *unstructured.Unstructured {
	object := c.apply(fmt.Sprintf(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %[1]s, namespace: %[2]s}
spec: {selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: %[3]s}}`, name, pods, spec))
	c.rolledOut(240, "daemonset", pods, name)
	return object
}

// web is the manifest of a Deployment of pods that the examples select, spread over the nodes.
func (c *Case) web(namespace, name string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: web, part: %[2]s}}
  template:
    metadata: {labels: {app: web, part: %[2]s}}
    spec:
      terminationGracePeriodSeconds: 0
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, runAsUser: 65534, seccompProfile: {type: RuntimeDefault}}
      topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {part: %[2]s}}}
      containers:
        - name: web
          image: %[4]s
          command: [sleep, infinity]
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}`, namespace, name, replicas, c.imageOf("probe"))
}
