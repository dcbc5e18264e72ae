# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Multus, and a stand-in for sriov-network-device-plugin (pool/): images and manifests. Needs $root, $images, $work and the Go toolchain.

sriov_pool=intel.com/sriov_capture

# sriov_image NAME FOLDER: prints the image's name, with the tag of its content.
sriov_image() {
	images/archive "$1" "$2" "$images/$1.tar"
	echo "ringcap.local/$1:$(image_tag "$1")"
}

# sriov_images BUILT: Multus, where its manifest looks for its programs, and the stand-in.
sriov_images() {
	local folder=$work/sriov
	mkdir -p "$folder"/multus/{usr/src/multus-cni/bin,tmp,bin,etc,run,var} "$folder"/pool/bin
	cp "$1"/bin/* "$folder/multus/usr/src/multus-cni/bin/"
	cp "$(command -v busybox)" "$folder/multus/bin/cp"
	ln -s ../run "$folder/multus/var/run"
	echo 'root:x:0:0:root:/root:/bin/sh' >"$folder/multus/etc/passwd"
	CGO_ENABLED=0 go build -buildvcs=false -ldflags '-s -w' -o "$folder/pool/bin/pool" ./e2e/suite/pool
	multus_image=$(sriov_image multus "$folder/multus")
	pool_image=$(sriov_image pool "$folder/pool")
	"$root/e2e/cluster/load-images"
}

# multus_manifest BUILT: Multus's own, but for the image, the node that it is for, and limits of real machines. The plugin host-device
# comes with it: a node has it where it has the reference plugins.
multus_manifest() {
	kubectl create --dry-run=client -o json -f "$1/multus-daemonset-thick.yml" | jq --arg image "$multus_image" '
		if .kind == "DaemonSet" then .spec.template.spec |= (
			.nodeSelector = {"ringcap.io/lab": "kmod"} |
			.initContainers += [.initContainers[0] + {name: "install-host-device",
				command: ["cp", "/usr/src/multus-cni/bin/host-device", "/host/opt/cni/bin/"]}] |
			(.containers, .initContainers)[] |= (.image = $image | .imagePullPolicy = "Never" | .resources = {}))
		else . end'
}

# The configuration is as of sriov-network-device-plugin.
pool_manifest() {
	cat <<-END
		apiVersion: v1
		kind: ConfigMap
		metadata: {name: sriovdp-config, namespace: kube-system}
		data:
		  config.json: |
		    {"resourceList": [{"resourceName": "${sriov_pool#*/}", "resourcePrefix": "${sriov_pool%/*}",
		      "selectors": {"vendors": ["8086"], "devices": ["10ca"], "drivers": ["igbvf"]}}]}
		---
		apiVersion: apps/v1
		kind: DaemonSet
		metadata: {name: pool, namespace: kube-system}
		spec:
		  selector: {matchLabels: {name: pool}}
		  template:
		    metadata: {labels: {name: pool}}
		    spec:
		      nodeSelector: {ringcap.io/lab: kmod}
		      terminationGracePeriodSeconds: 1
		      automountServiceAccountToken: false
		      containers:
		        - name: pool
		          image: $pool_image
		          command: [pool, /etc/pcidp/config.json, /sys/bus/pci/devices, /var/lib/kubelet/device-plugins]
		          volumeMounts: [{name: config, mountPath: /etc/pcidp}, {name: plugins, mountPath: /var/lib/kubelet/device-plugins}]
		      volumes:
		        - {name: config, configMap: {name: sriovdp-config}}
		        - {name: plugins, hostPath: {path: /var/lib/kubelet/device-plugins}}
	END
}

# sriov_manifests BUILT FOLDER: makes the images, and writes multus.json and pool.yaml.
sriov_manifests() {
	local multus_image pool_image
	sriov_images "$1"
	multus_manifest "$1" >"$2/multus.json"
	pool_manifest >"$2/pool.yaml"
}
