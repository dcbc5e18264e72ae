// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// push sends images, what is attached to them, and last the chart, which needs them all. Then it writes the manifests for the registry.
func (t *target) push() error {
	images, err := t.entries(imageName)
	if err != nil {
		return err
	}
	for _, image := range images {
		if err := t.pushImage(image); err != nil {
			return t.explain(err)
		}
	}
	attached, err := t.entries(attachedTo)
	if err != nil {
		return err
	}
	for _, entry := range attached {
		if err := t.pushAttached(entry); err != nil {
			return t.explain(err)
		}
	}
	if err := t.pushChart(); err != nil {
		return t.explain(err)
	}
	return t.manifests()
}

func (t *target) pushImage(entry v1.Descriptor) error {
	repository, err := t.repository(entry.Annotations[imageName])
	if err != nil {
		return err
	}
	index, err := t.layout.ImageIndex()
	if err != nil {
		return err
	}
	image, err := index.ImageIndex(entry.Digest)
	if err != nil {
		return err
	}
	tag := repository.Tag(t.chart.version)
	if err := t.mayTag(tag, entry.Digest); err != nil {
		return err
	}
	if err := remote.WriteIndex(tag, image, t.options...); err != nil {
		return err
	}
	return t.pushed(tag, entry.Digest)
}

func (t *target) pushAttached(entry v1.Descriptor) error {
	repository, err := t.repository(entry.Annotations[attachedTo])
	if err != nil {
		return err
	}
	attached, err := t.layout.Image(entry.Digest)
	if err != nil {
		return err
	}
	return remote.Write(repository.Digest(entry.Digest.String()), attached, t.options...)
}

// chartTag is where Helm finds the chart.
func (t *target) chartTag() (name.Tag, error) {
	repository, err := t.repository("charts/" + t.chart.name)
	return repository.Tag(t.chart.version), err
}

// chartImage returns the chart as an image for this registry, with its tag and its digest.
func (t *target) chartImage() (name.Tag, v1.Image, v1.Hash, error) {
	tag, err := t.chartTag()
	if err != nil {
		return name.Tag{}, nil, v1.Hash{}, err
	}
	image, err := t.chart.image()
	if err != nil {
		return name.Tag{}, nil, v1.Hash{}, err
	}
	digest, err := image.Digest()
	return tag, image, digest, err
}

func (t *target) pushChart() error {
	tag, image, digest, err := t.chartImage()
	if err != nil {
		return err
	}
	if err := t.mayTag(tag, digest); err != nil {
		return err
	}
	if err := remote.Write(tag, image, t.options...); err != nil {
		return err
	}
	if err := t.pushed(tag, digest); err != nil {
		return err
	}
	command, err := t.install(tag)
	if err != nil {
		return err
	}
	fmt.Println(command)
	return nil
}

// install is the command that installs the chart. An address of this machine or of a private network may be of a registry without TLS, of
// which helm has to be told.
func (t *target) install(tag name.Tag) (string, error) {
	command := fmt.Sprintf("helm install ringcap oci://%s --version %s --namespace ringcap-system --create-namespace",
		tag.Repository.Name(), t.chart.version)
	answer, err := transport.Ping(context.Background(), tag.Registry, http.DefaultTransport)
	if err != nil {
		return "", err
	}
	if answer.Insecure {
		command += " --plain-http"
	}
	return command, nil
}

// mayTag refuses to move a tag: somebody may run what it names.
func (t *target) mayTag(tag name.Tag, to v1.Hash) error {
	there, err := remote.Head(tag, t.options...)
	if missing(err) || t.force {
		return nil
	}
	if err != nil {
		return err
	}
	if there.Digest != to {
		return fmt.Errorf("%s is another one already (%s, this one is %s): raise the version in Chart.yaml, or replace it with FORCE=1", tag, there.Digest, to)
	}
	return nil
}

// pushed says what is there now, and signs it.
func (t *target) pushed(tag name.Tag, digest v1.Hash) error {
	fmt.Printf("%s@%s\n", tag, digest)
	if t.key == nil {
		return nil
	}
	to, signature, err := signatureOf(t.key, tag.Digest(digest.String()))
	if err != nil {
		return err
	}
	return remote.Write(to, signature, t.options...)
}

var ourImage = regexp.MustCompile(`ringcap\.local/([a-z]+):[A-Za-z0-9._-]+`)

// moveImages replaces ringcap.local/NAME:TAG by the image of the release in the registry. Images that it has not, stay.
func moveImages(manifest []byte, registry string, digests map[string]string) []byte {
	return ourImage.ReplaceAllFunc(manifest, func(found []byte) []byte {
		image := string(ourImage.FindSubmatch(found)[1])
		if digest, ok := digests[image]; ok {
			return []byte(registry + "/" + image + "@" + digest)
		}
		return found
	})
}
