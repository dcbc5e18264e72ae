// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// artifact is something in a registry that is not an image: one file, with a configuration of its own.
type artifact struct {
	manifest v1.Manifest
	config   []byte
	content  blob
}

// blob is a layer as it is.
type blob struct {
	bytes     []byte
	mediaType types.MediaType
}

// newArtifact returns one with a content and a configuration, attached to subject if that is not nil.
func newArtifact(content blob, config blob, annotations map[string]string, subject *v1.Descriptor) (*artifact, error) {
	layer, err := content.descriptor()
	if err != nil {
		return nil, err
	}
	configured, err := config.descriptor()
	if err != nil {
		return nil, err
	}
	layer.Annotations = annotations
	return &artifact{config: config.bytes, content: content, manifest: v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: configured, Layers: []v1.Descriptor{layer}, Subject: subject,
	}}, nil
}

// attach returns a document as an artifact of that type which is attached to something else.
func attach(document any, kind types.MediaType, to partial.Describable) (v1.Image, error) {
	text, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		return nil, err
	}
	subject, err := descriptor(to)
	if err != nil {
		return nil, err
	}
	// Who lists what is attached to an image sees the type of its configuration.
	a, err := newArtifact(blob{text, kind}, blob{[]byte("{}"), kind}, nil, subject)
	if err != nil {
		return nil, err
	}
	return a.image()
}

func (a *artifact) image() (v1.Image, error) { return partial.CompressedToImage(a) }

// RawConfigFile implements partial.CompressedImageCore, as the others below.
func (a *artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

// MediaType is that of an image, for registries take all as images.
func (a *artifact) MediaType() (types.MediaType, error) { return a.manifest.MediaType, nil }

// RawManifest returns the same bytes each time.
func (a *artifact) RawManifest() ([]byte, error) { return json.Marshal(a.manifest) }

// LayerByDigest returns the content.
func (a *artifact) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	if h == a.manifest.Layers[0].Digest {
		return a.content, nil
	}
	return nil, fmt.Errorf("there is no layer %s", h)
}

func (b blob) descriptor() (v1.Descriptor, error) {
	digest, size, err := v1.SHA256(bytes.NewReader(b.bytes))
	return v1.Descriptor{MediaType: b.mediaType, Digest: digest, Size: size}, err
}

// Digest implements partial.CompressedLayer, as the others below.
func (b blob) Digest() (v1.Hash, error) {
	desc, err := b.descriptor()
	return desc.Digest, err
}

// Compressed returns the bytes as they are.
func (b blob) Compressed() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.bytes)), nil }

// Size in bytes.
func (b blob) Size() (int64, error) { return int64(len(b.bytes)), nil }

// MediaType of the content.
func (b blob) MediaType() (types.MediaType, error) { return b.mediaType, nil }
