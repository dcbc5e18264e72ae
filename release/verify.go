// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// verify compares the registry with the release: each image is there by its digest, with all of its content, under its tag; and, if a
// platform is given, runs on it. It names all that is wrong.
func (t *target) verify(platform string) error {
	images, err := t.entries(imageName)
	if err != nil {
		return err
	}
	var wrong []error
	for _, image := range images {
		wrong = append(wrong, t.verifyImage(image, platform))
	}
	if err := errors.Join(append(wrong, t.verifyChart())...); err != nil {
		return err
	}
	fmt.Printf("%s has the %d images and the chart of %s, unchanged\n", t.registry, len(images), t.folder)
	return nil
}

func (t *target) verifyImage(entry v1.Descriptor, platform string) error {
	repository, err := t.repository(entry.Annotations[imageName])
	if err != nil {
		return err
	}
	byDigest := repository.Digest(entry.Digest.String())
	index, err := remote.Index(byDigest, t.options...)
	if missing(err) {
		return fmt.Errorf("%s is not there: make push REGISTRY=%s", byDigest, t.registry)
	}
	if err != nil {
		return t.explain(err)
	}
	if err := validate.Index(index); err != nil {
		return fmt.Errorf("%s is not what was released: %w", byDigest, err)
	}
	return errors.Join(runsOn(byDigest, index, platform), t.verifyTag(repository.Tag(t.chart.version), entry.Digest))
}

// runsOn says whether an image has a platform, if it is asked for one.
func runsOn(image name.Digest, index v1.ImageIndex, platform string) error {
	if platform == "" {
		return nil
	}
	want, err := v1.ParsePlatform(platform)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	var has []string
	for _, entry := range manifest.Manifests {
		if entry.Platform.Satisfies(*want) {
			return nil
		}
		has = append(has, entry.Platform.String())
	}
	return fmt.Errorf("%s is not for %s, but for %v", image, platform, has)
}

func (t *target) verifyTag(tag name.Tag, want v1.Hash) error {
	there, err := remote.Head(tag, t.options...)
	switch {
	case missing(err):
		return fmt.Errorf("%s is not there: make push REGISTRY=%s", tag, t.registry)
	case err != nil:
		return t.explain(err)
	case there.Digest != want:
		return fmt.Errorf("%s was moved: it is %s, and was released as %s", tag, there.Digest, want)
	}
	return nil
}

func (t *target) verifyChart() error {
	tag, _, digest, err := t.chartImage()
	if err != nil {
		return err
	}
	return t.verifyTag(tag, digest)
}
