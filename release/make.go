// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Annotations in the index of a release's images.
const (
	// imageName is an image's name, such as agent.
	imageName = "org.opencontainers.image.ref.name"
	// attachedTo is the name of the image that an SBOM or a provenance is for.
	attachedTo = "io.ringcap.attached-to"
)

// architectures that images are built for. An image need not have all of them.
var architectures = []string{"amd64", "arm64"}

// recipe says what a release is made of. The same recipe over the same files makes the same bytes.
type recipe struct {
	chart, archives, out, revision string
	// time is the commit's, and that of all that is made.
	time time.Time
}

// make writes images and chart.
func (r recipe) make(names []string) error {
	chart, err := readChart(r.chart)
	if err != nil {
		return err
	}
	folder := filepath.Join(r.out, "oci")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	path, err := layout.Write(folder, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	digests := map[string]string{}
	for _, name := range names {
		if digests[name], err = r.image(path, name, chart.version); err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
	}
	if err := chart.setDigests(digests); err != nil {
		return err
	}
	return chart.write(filepath.Join(r.out, chart.file()))
}

// image adds an image with its SBOMs and provenance, and returns its digest.
func (r recipe) image(path layout.Path, name, version string) (string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var attachments []v1.Image
	for _, architecture := range architectures {
		archive := filepath.Join(r.archives, architecture, name+".tar")
		if _, err := os.Stat(archive); os.IsNotExist(err) {
			continue
		}
		image, err := r.fromArchive(archive, name, version, architecture)
		if err != nil {
			return "", err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
		sbom, err := r.sbom(image, name, version, architecture)
		if err != nil {
			return "", err
		}
		attachments = append(attachments, sbom)
		report(name, architecture, image)
	}
	if len(attachments) == 0 {
		return "", fmt.Errorf("there is no archive of it for %v in %s", architectures, r.archives)
	}
	provenance, err := r.provenance(index, name)
	if err != nil {
		return "", err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{imageName: name})); err != nil {
		return "", err
	}
	for _, attachment := range append(attachments, provenance) {
		if err := path.AppendImage(attachment, layout.WithAnnotations(map[string]string{attachedTo: name})); err != nil {
			return "", err
		}
	}
	digest, err := index.Digest()
	return digest.String(), err
}

// report prints the size of what a node downloads.
func report(name, architecture string, image v1.Image) {
	var size int64
	if manifest, err := image.Manifest(); err == nil {
		for _, layer := range manifest.Layers {
			size += layer.Size
		}
	}
	fmt.Printf("%-10s %s  %5.1f MB compressed\n", name, architecture, float64(size)/1e6)
}

// descriptor of what something is attached to.
func descriptor(of partial.Describable) (*v1.Descriptor, error) {
	desc, err := partial.Descriptor(of)
	if err != nil {
		return nil, err
	}
	return &v1.Descriptor{MediaType: desc.MediaType, Size: desc.Size, Digest: desc.Digest}, nil
}
