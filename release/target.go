// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/sigstore/sigstore/pkg/signature"
)

// target is a release and the registry that it is for.
type target struct {
	// registry is HOST[:PORT][/PATH].
	registry string
	// folder of the release.
	folder string
	layout layout.Path
	chart  *chart
	// key signs what is pushed, nil for none.
	key signature.Signer
	// force replaces tags.
	force   bool
	options []remote.Option
}

// address of a registry, whose host has a dot or a port, or is localhost: otherwise Docker takes it for a folder of its own registry.
var address = regexp.MustCompile(`^(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9.-]+:[0-9]+)(:[0-9]+)?(/[a-z0-9._-]+)*$`)

// open reads a release's folder. It does not ask the registry.
func open(ctx context.Context, folder, registry string) (*target, error) {
	t := &target{registry: strings.TrimSuffix(registry, "/"), folder: folder}
	if !address.MatchString(t.registry) {
		return nil, fmt.Errorf("the registry %q is not HOST[:PORT][/PATH]: no https:// or oci://, no capitals, and a HOST without a dot needs its PORT", registry)
	}
	var err error
	if t.layout, err = layout.FromPath(filepath.Join(folder, "oci")); err != nil {
		return nil, fmt.Errorf("there is no release in %s: %w: run make release", folder, err)
	}
	archives, err := filepath.Glob(filepath.Join(folder, "ringcap-*.tgz"))
	if err != nil || len(archives) != 1 {
		return nil, fmt.Errorf("there are %d charts in %s: run make release", len(archives), folder)
	}
	if t.chart, err = openChart(archives[0]); err != nil {
		return nil, err
	}
	t.options = []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithJobs(2)}
	return t, t.chart.setRegistry(t.registry)
}

func (t *target) repository(image string) (name.Repository, error) {
	return name.NewRepository(t.registry + "/" + image)
}

// explain adds to an error of a registry what to do.
func (t *target) explain(err error) error {
	var network *net.OpError
	var refused *transport.Error
	advice := ""
	switch {
	case err == nil:
		return nil
	case errors.As(err, &network):
		advice = "the registry cannot be reached: is it up, and is that its address?"
	case errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden):
		advice = "the registry refuses these credentials: docker login " + strings.Split(t.registry, "/")[0]
	default:
		return fmt.Errorf("%s: %w", t.registry, err)
	}
	return fmt.Errorf("%s: %w: %s", t.registry, err, advice)
}

// missing says whether an error of a registry is that it does not have it.
func missing(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}

// entries returns the release's images, or what is attached to them, by the annotation.
func (t *target) entries(annotation string) ([]v1.Descriptor, error) {
	index, err := t.layout.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var found []v1.Descriptor
	for _, entry := range manifest.Manifests {
		if entry.Annotations[annotation] != "" {
			found = append(found, entry)
		}
	}
	return found, nil
}

// manifests writes the release's manifests into its folder "pushed", with the images of the registry.
func (t *target) manifests() error {
	digests := map[string]string{}
	images, err := t.entries(imageName)
	if err != nil {
		return err
	}
	for _, image := range images {
		digests[image.Annotations[imageName]] = image.Digest.String()
	}
	for _, pattern := range []string{"examples/*.yaml", "kustomize/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(t.folder, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := t.manifest(file, digests); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *target) manifest(file string, digests map[string]string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(t.folder, file)
	if err != nil {
		return err
	}
	to := filepath.Join(t.folder, "pushed", relative)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, moveImages(text, t.registry, digests), 0o644)
}
