# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A sensor gets a virtual function by Multus and a queue of the ring over it (examples/sriov.yaml as it is), on the node with the
# module. Multus is the real one, by its own manifest; pool/ stands in for sriov-network-device-plugin. Needs card.sh, cli.sh,
# examples.sh, refused.sh, and the demo's replay.sh and collect.sh.
#
#	wire1 (replay) ---cable--- card0 (igb) ~ virtual function ---> in the sensor's pod: net1 ---> ring virtual-functions ---> tcpdump

sriov_pool=intel.com/sriov_capture
sriov_ring=virtual-functions
sriov_namespace=ringcap-sriov

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

# One function, so that the next pod has it again. What it looks like on the node is what it has to look like when it is back. A
# physical function of QEMU's card makes the wire wait, a virtual one loses what it has no descriptor for: its ring is to last while
# this machine does something else, two seconds at the rate of function_replay.
function_make() {
	on_node 'modprobe igbvf && echo 1 >/sys/class/net/card0/device/sriov_numvfs'
	function_up() { function_looks | grep -q .; }
	wait_for 90 function_up
	function_before=$(function_looks)
	read -r function_name function_mac _ <<<"$function_before"
	on_node "ethtool -G $function_name rx 4096"
}

# shellcheck disable=SC2016 # the other shell's
function_looks() {
	on_node 'for i in /sys/class/net/card0/device/virtfn0/net/*; do [ ! -d $i ] || echo ${i##*/} $(cat $i/address $i/ifindex); done'
}

pool_offers() { [ "$(kubectl get node node-kmod -o json | jq -r --arg pool $sriov_pool '.status.allocatable[$pool]')" = "$1" ]; }

networks_enabled() {
	helm upgrade ringcap charts/ringcap --namespace ringcap-system --reuse-values \
		--set "operator.networks.enabled=$1,operator.networks.pools.enabled=$1,operator.networks.pools.daemonSets={pool}" >/dev/null
	kubectl -n ringcap-system rollout status deployment/ringcap-operator --timeout=2m >/dev/null
}

# The ring tells what is in its pool. Whose configuration is there already keeps it; when he has removed it, the operator writes it
# anew, and the device plugin reads it.
pool_owned() {
	local mark='{.spec.template.metadata.annotations.ringcap\.io/pools}'
	kubectl patch capturering $sriov_ring --type=json -p '[{"op": "add", "path": "/spec/interfaces/0/pool", "value":
		{"vendors": ["8086"], "devices": ["10ca"], "drivers": ["igbvf"]}}]'
	expect_condition capturering/$sriov_ring NetworksWritten 'False PoolConflict'
	kubectl -n kube-system delete configmap sriovdp-config
	expect_condition capturering/$sriov_ring NetworksWritten 'True'
	[ -n "$(kubectl -n kube-system get daemonset pool -o jsonpath="$mark")" ]
	kubectl -n kube-system rollout status daemonset/pool --timeout=2m
	wait_for 60 pool_offers 1
}

sensor() { pod_in $sriov_namespace sensor-sriov node-kmod; }
sensor_runs() { kubectl -n $sriov_namespace exec "$(sensor)" -- "$@" </dev/null; }

# The sensor has the queue, the node's report the function, in the sensor's pod.
sensor_attached() {
	local pod
	pod=$(sensor) && kubectl get nodecapture node-kmod -o json | jq -e --arg pod "$sriov_namespace/$pod" --arg ring $sriov_ring --arg name "$function_name" '
		.status | any(.clusters[]; .name == $ring and .queues[0].attached and .queues[0].consumer == $pod) and
		any(.interfaces[]; .name == $name and .pod == $pod and (.rings | index($ring)))'
}

# numbered PORT COUNT: a capture of datagrams to the function, each with its number, of eight flows.
numbered() {
	python3 - "$function_mac" "$1" "$2" <<-'END'
		import struct, sys
		mac, port, count = bytes.fromhex(sys.argv[1].replace(":", "")), int(sys.argv[2]), int(sys.argv[3])
		sys.stdout.buffer.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
		for number in range(count):
		    data = b"%032d" % number
		    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(data), 0, 0, 64, 17, 0, bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2]))
		    frame = mac + bytes.fromhex("020000000001") + b"\x08\x00" + ip + struct.pack(">HHHH", 1000 + number % 8, port, 8 + len(data), 0) + data
		    sys.stdout.buffer.write(struct.pack("<IIII", number // 1000, number % 1000 * 1000, len(frame), len(frame)) + frame)
	END
}

# The driver's own count of what came.
function_received() { sensor_runs cat /sys/class/net/net1/statistics/rx_packets; }

# A card that has just come up does not forward yet.
function_forwards() {
	local before
	before=$(function_seen)
	ip netns exec "$(node_wire node-kmod)" tcpreplay --quiet --intf1=wire1 "$work/first.pcap" >"$log/tcpreplay-first.log" 2>&1
	function_sees() { [ "$(function_seen)" -gt "$before" ]; }
	wait_for 15 function_sees
}

# What the ring has seen; nothing while its queue has not had it all, for they are counted a moment apart.
function_seen() {
	"$rcdemo" nodecaptures | jq --arg ring $sriov_ring '.items[] | select(.metadata.name == "node-kmod").status | (.rings[] | select(.name == $ring)).seen as $seen |
		.clusters[] | select(.name == $ring).queues[0] | select(.delivered + ([.dropped[]?.packets] | add) == $seen) | $seen'
}

# function_replay NAME: each of the numbered packets that are on the wire is received by the function, seen by the ring, and in the
# sensor's file once and unchanged; and nothing else is.
function_replay() {
	local run=$work/function_$1 replay_wire=wire1 collect_ring=$sriov_ring collect_cluster=$sriov_ring packets=5000 pod received
	local RINGCAP_DEMO_PPS_KMOD=2000
	mkdir -p "$run"
	pod=$(sensor)
	numbered 10 1 >"$work/first.pcap"
	numbered 9 $packets >"$run/input.pcap"
	wait_for 120 function_forwards
	received=$(function_received)
	collect_counters "$run/before.json"
	replay "$run/input.pcap" "$run/wire.json" node-kmod
	collect_stable "$run/before.json" "$run/wire.json" "$run/after.json" 60
	pod_file $sriov_namespace "$pod" /captures/vf.pcap "$run/all.pcap"
	tcpdump -r "$run/all.pcap" -w "$run/${sriov_namespace}_$pod.pcap" 'udp dst port 9'
	same 'others in the file' "$(captured "$run/all.pcap" 'not (udp dst port 9 or udp dst port 10)')" 0
	"$rcdemo" report --dir "$run" --ring $sriov_ring --cluster $sriov_ring --lossless
	function_counted() { [ $(($(function_received) - received)) = $packets ]; }
	wait_for 90 function_counted || { echo "the driver counted $(($(function_received) - received)) of $packets packets" >&2; return 1; }
}

pool_disowned() { ! kubectl -n kube-system get configmap sriovdp-config; }

multus_serves() { on_node 'ls /etc/cni/net.d/00-multus.conf'; }

sriov_up() {
	sriov_images "$1"
	function_make
	networks_enabled true
	multus_manifest "$1" | kubectl apply -f -
	pool_manifest | kubectl apply -f -
	wait_for 120 pool_offers 1
	wait_for 60 multus_serves
}

# Multus leaves its configuration to whoever removes it; pods that it attached need it until they are gone.
sriov_down() {
	pool_manifest | kubectl delete --ignore-not-found --cascade=foreground -f -
	on_node 'rm -r /etc/cni/net.d/00-multus.conf /etc/cni/multus && cd /opt/cni/bin && rm multus-shim passthru host-device'
	multus_manifest "$1" | kubectl delete --cascade=foreground -f -
	networks_enabled false
	on_node 'echo 0 >/sys/class/net/card0/device/sriov_numvfs && modprobe -r igbvf'
}

# shellcheck disable=SC2016 # the other shell's
test_sriov_function_and_queue() {
	local built multus_image pool_image function_before function_name function_mac first
	built=$(e2e/multus/build)
	sriov_up "$built"
	kubectl apply -f examples/sriov.yaml
	wait_for 120 sensor_attached || { state_pods; kubectl get nodecapture node-kmod -o json | jq .status; return 1; }
	expect_condition capturering/$sriov_ring NetworksWritten 'True'
	first=$(sensor)
	same 'the function that the sensor hears of' "$(sensor_runs sh -c 'echo $PCIDEVICE_INTEL_COM_SRIOV_CAPTURE')" 0000:01:10.0
	same 'its address in the pod' "$(sensor_runs cat /sys/class/net/net1/address)" "$function_mac"
	function_replay first

	kubectl -n $sriov_namespace scale deployment sensor --replicas=0
	kubectl -n $sriov_namespace wait pod "$first" --for=delete --timeout=60s
	same 'the function on the node again' "$(function_looks)" "$function_before"
	pool_owned
	kubectl -n $sriov_namespace scale deployment sensor --replicas=1
	wait_for 120 sensor_attached || { state_pods; kubectl get nodecapture node-kmod -o json | jq .status; return 1; }
	function_replay second

	kubectl delete --timeout=3m -f examples/sriov.yaml
	wait_for 90 pool_disowned
	sriov_down "$built"
	on_node '! dmesg | grep -E "BUG|Oops|WARNING|general protection"'
}
