# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# An image with one more layer than another one that the nodes have, as an OCI archive without what they have: a virtual machine
# takes minutes to read a whole image, and a second to read a module. Needs $images and $work.

# layer_over IMAGE NAME FOLDER: out/images/NAME.tar, ringcap.local/NAME:NAME, which is IMAGE and over it the folder.
layer_over() {
	local image=$1 name=$2 folder=$3 oci=$work/$2.oci parts=$work/$2.parts type=application/vnd.oci.image
	mkdir -p "$oci/blobs/sha256" "$parts"
	tar -xf "$images/$image.tar" -C "$parts" config.json layer.tar
	tar --owner=0 --group=0 -cf "$parts/over.tar" -C "$folder" .
	layer_blob "$oci" "$parts/over.tar" $type.layer.v1.tar >"$parts/over.json"
	jq --slurpfile over "$parts/over.json" '.rootfs.diff_ids += [$over[0].digest] | .history += [{created_by: "e2e/suite"}]' \
		"$parts/config.json" >"$parts/config"
	layer_blob "$oci" "$parts/config" $type.config.v1+json >"$parts/image.json"
	jq -n --slurpfile config "$parts/config.json" --slurpfile image "$parts/image.json" --slurpfile over "$parts/over.json" \
		--arg type $type --argjson size "$(stat -c %s "$parts/layer.tar")" '
		{schemaVersion: 2, mediaType: "\($type).manifest.v1+json", config: $image[0],
		 layers: [{mediaType: $over[0].mediaType, digest: $config[0].rootfs.diff_ids[0], $size}, $over[0]]}' >"$parts/manifest"
	layer_blob "$oci" "$parts/manifest" $type.manifest.v1+json >"$parts/manifest.json"
	jq --arg name "ringcap.local/$name:$name" '{schemaVersion: 2, manifests: [. + {annotations: {"io.containerd.image.name": $name}}]}' \
		"$parts/manifest.json" >"$oci/index.json"
	echo '{"imageLayoutVersion": "1.0.0"}' >"$oci/oci-layout"
	tar -cf "$images/$name.tar" -C "$oci" .
	jq -r .digest "$parts/manifest.json" >"$images/$name.sum"
	rm -rf "$parts" "$oci"
}

# layer_blob LAYOUT FILE TYPE: the file as a blob; prints its descriptor.
layer_blob() {
	local digest
	digest=$(sha256sum "$2" | cut -d ' ' -f 1)
	cp "$2" "$1/blobs/sha256/$digest"
	jq -nc --arg mediaType "$3" --arg digest "sha256:$digest" --argjson size "$(stat -c %s "$2")" '{$mediaType, $digest, $size}'
}
