// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// source is where all is from.
const source = "https://github.com/ringcap/ringcap"

// fromArchive returns the image of an archive of images/build as an OCI image with labels.
func (r recipe) fromArchive(archive, name, version, architecture string) (v1.Image, error) {
	built, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return nil, err
	}
	config, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	if config.Architecture != architecture {
		return nil, fmt.Errorf("%s is for %s", archive, config.Architecture)
	}
	config = config.DeepCopy()
	history := config.History
	config.RootFS.DiffIDs, config.History, config.Created = nil, nil, v1.Time{Time: r.time}
	config.Config.Labels = r.labels(name, version)
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return r.addLayers(image, built, history)
}

// addLayers compresses each layer once, and keeps it in memory.
func (r recipe) addLayers(image, built v1.Image, history []v1.History) (v1.Image, error) {
	layers, err := built.Layers()
	if err != nil {
		return nil, err
	}
	for i, layer := range layers {
		compressed, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return layer.Uncompressed() },
			tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		add := mutate.Addendum{Layer: compressed, History: v1.History{Created: v1.Time{Time: r.time}}}
		if i < len(history) {
			add.History.CreatedBy = history[i].CreatedBy
		}
		if image, err = mutate.Append(image, add); err != nil {
			return nil, err
		}
	}
	return image, nil
}

// labels of an image, of those that the OCI defines.
func (r recipe) labels(name, version string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "ringcap " + name,
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.revision": r.revision,
		"org.opencontainers.image.source":   source,
		"org.opencontainers.image.url":      source,
		"org.opencontainers.image.vendor":   "The authors of ringcap",
		"org.opencontainers.image.created":  r.time.Format("2006-01-02T15:04:05Z07:00"),
	}
}
