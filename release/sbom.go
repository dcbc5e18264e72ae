// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha1" //nolint:gosec // SPDX demands it of files
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// The parts of SPDX 2.3 in JSON that are used here.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		DataLicense   string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Files         []spdxFile         `json:"files"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Version       string         `json:"versionInfo"`
		Location      string         `json:"downloadLocation"`
		FilesAnalyzed bool           `json:"filesAnalyzed"`
		Checksums     []spdxChecksum `json:"checksums,omitempty"`
		References    []spdxRef      `json:"externalRefs,omitempty"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxFile struct {
		ID        string         `json:"SPDXID"`
		Name      string         `json:"fileName"`
		Checksums []spdxChecksum `json:"checksums"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Kind string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const rootPackage = "SPDXRef-Image"

// sbom returns the list of an image's files, and of the Go modules in its programs, attached to it.
func (r recipe) sbom(image v1.Image, name, version, architecture string) (v1.Image, error) {
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	document := &spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name + "-" + version + "-" + architecture,
		Namespace: source + "/sbom/" + name + "/" + architecture + "/" + digest.Hex,
		Creation:  spdxCreation{Created: r.time.Format("2006-01-02T15:04:05Z"), Creators: []string{"Tool: ringcap-release"}},
		Packages: []spdxPackage{{
			ID: rootPackage, Name: name, Version: version, Location: "NOASSERTION", Checksums: []spdxChecksum{{"SHA256", digest.Hex}},
		}},
		Relationships: []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", rootPackage}},
	}
	if err := document.addFiles(image); err != nil {
		return nil, err
	}
	return attach(document, "application/spdx+json", image)
}

func (d *spdxDocument) addFiles(image v1.Image) error {
	content := mutate.Extract(image)
	defer content.Close()
	modules := map[string]bool{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		d.addFile(header.Name, body)
		d.addModules(body, modules)
	}
}

func (d *spdxDocument) addFile(name string, body []byte) {
	file := spdxFile{
		ID: fmt.Sprintf("SPDXRef-File-%d", len(d.Files)), Name: "./" + strings.TrimPrefix(strings.TrimPrefix(name, "."), "/"),
		Checksums: []spdxChecksum{{"SHA1", fmt.Sprintf("%x", sha1.Sum(body))}, {"SHA256", fmt.Sprintf("%x", sha256.Sum256(body))}},
	}
	d.Files = append(d.Files, file)
	d.Relationships = append(d.Relationships, spdxRelationship{rootPackage, "CONTAINS", file.ID})
}

// addModules adds the Go modules that a program is linked of, but for those that are known.
func (d *spdxDocument) addModules(program []byte, known map[string]bool) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return // not a program in Go
	}
	d.addModule("stdlib", info.GoVersion, "pkg:golang/stdlib@"+strings.TrimPrefix(info.GoVersion, "go"), known)
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		d.addModule(module.Path, module.Version, "pkg:golang/"+module.Path+"@"+module.Version, known)
	}
}

func (d *spdxDocument) addModule(name, version, purl string, known map[string]bool) {
	if known[purl] {
		return
	}
	known[purl] = true
	id := fmt.Sprintf("SPDXRef-Module-%d", len(known))
	d.Packages = append(d.Packages, spdxPackage{
		ID: id, Name: name, Version: version, Location: "NOASSERTION", References: []spdxRef{{"PACKAGE-MANAGER", "purl", purl}},
	})
	d.Relationships = append(d.Relationships, spdxRelationship{rootPackage, "CONTAINS", id})
}
