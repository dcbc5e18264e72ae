// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"go.yaml.in/yaml/v3"
)

// chart is a Helm chart, whose archive is always the same bytes, unlike that of `helm package`.
type chart struct {
	name, version string
	// metadata is Chart.yaml in JSON.
	metadata []byte
	// files by their paths in the chart.
	files map[string][]byte
}

// readChart reads a chart's folder. Files of Helm's own, whose names begin with a dot, are left out.
func readChart(folder string) (*chart, error) {
	c := &chart{files: map[string][]byte{}}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		c.files[filepath.ToSlash(relative)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the chart: %w", err)
	}
	return c, c.describe()
}

// openChart reads an archive that write wrote.
func openChart(path string) (*chart, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := &chart{files: map[string][]byte{}}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return c, c.describe()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		if c.files[name], err = io.ReadAll(archive); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
}

func (c *chart) describe() error {
	var metadata map[string]any
	if err := yaml.Unmarshal(c.files["Chart.yaml"], &metadata); err != nil {
		return fmt.Errorf("Chart.yaml: %w", err)
	}
	c.name, _ = metadata["name"].(string)
	c.version, _ = metadata["version"].(string)
	if c.name == "" || c.version == "" || metadata["appVersion"] != c.version {
		return errors.New("Chart.yaml has no name or version, or an appVersion that is another one")
	}
	var err error
	c.metadata, err = json.Marshal(metadata)
	return err
}

// file is the name of the archive.
func (c *chart) file() string { return c.name + "-" + c.version + ".tgz" }

// setDigests sets the digest of each image that the values name and the release has. The operator's and the agent's must be there.
func (c *chart) setDigests(digests map[string]string) error {
	for _, needed := range []string{"operator", "agent"} {
		if digests[needed] == "" {
			return fmt.Errorf("the chart needs the image %s, which the release has not", needed)
		}
	}
	images := regexp.MustCompile(`(?s)(\n +repository: )(\S+)(\n.*?\n +digest: )""`)
	c.files["values.yaml"] = images.ReplaceAllFunc(c.files["values.yaml"], func(found []byte) []byte {
		parts := images.FindSubmatch(found)
		digest := digests[string(parts[2])]
		return bytes.Join([][]byte{parts[1], parts[2], parts[3], []byte(`"` + digest + `"`)}, nil)
	})
	return nil
}

var registryValue = regexp.MustCompile(`(?m)^(global:\n  image:\n(?:    #.*\n)*    registry: ).*$`)

// setRegistry sets where the images are.
func (c *chart) setRegistry(registry string) error {
	if !registryValue.Match(c.files["values.yaml"]) {
		return errors.New("the chart's values have no global.image.registry")
	}
	c.files["values.yaml"] = registryValue.ReplaceAll(c.files["values.yaml"], []byte("${1}"+registry))
	return nil
}

func (c *chart) archive() ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		header := &tar.Header{Name: c.name + "/" + name, Mode: 0o644, Size: int64(len(c.files[name])), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(c.files[name]); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (c *chart) write(path string) error {
	archive, err := c.archive()
	if err != nil {
		return err
	}
	return os.WriteFile(path, archive, 0o644)
}

// image returns the chart as registries keep charts for Helm.
func (c *chart) image() (v1.Image, error) {
	archive, err := c.archive()
	if err != nil {
		return nil, err
	}
	a, err := newArtifact(blob{archive, "application/vnd.cncf.helm.chart.content.v1.tar+gzip"},
		blob{c.metadata, "application/vnd.cncf.helm.config.v1+json"}, nil, nil)
	if err != nil {
		return nil, err
	}
	a.manifest.Annotations = map[string]string{
		"org.opencontainers.image.title": c.name, "org.opencontainers.image.version": c.version, "org.opencontainers.image.source": source,
	}
	return a.image()
}
