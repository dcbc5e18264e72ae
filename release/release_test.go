// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

// released makes a release of small images: operator and agent for both architectures, tcpdump for one. content is in each of them.
func released(t *testing.T, content string) string {
	t.Helper()
	archives, out := t.TempDir(), t.TempDir()
	for _, image := range []string{"amd64/operator", "arm64/operator", "amd64/agent", "arm64/agent", "amd64/tcpdump"} {
		writeArchive(t, filepath.Join(archives, image+".tar"), filepath.Dir(image), image+content)
	}
	r := recipe{chart: "../charts/ringcap", archives: archives, out: out, revision: "0a0b", time: time.Unix(1e9, 0).UTC()}
	require.NoError(t, os.Mkdir(filepath.Join(out, "examples"), 0o755))
	example := "image: ringcap.local/tcpdump:demo\nimage: ringcap.local/snort:demo\n"
	require.NoError(t, os.WriteFile(filepath.Join(out, "examples", "one.yaml"), []byte(example), 0o644))
	require.NoError(t, r.make([]string{"operator", "agent", "tcpdump"}))
	return out
}

func writeArchive(t *testing.T, path, architecture, content string) {
	t.Helper()
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	require.NoError(t, archive.WriteHeader(&tar.Header{Name: "./file", Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}))
	_, err := archive.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, archive.Close())
	added, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	require.NoError(t, err)
	image, err := mutate.AppendLayers(empty.Image, added)
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	config = config.DeepCopy()
	config.Architecture, config.OS = architecture, "linux"
	image, err = mutate.ConfigFile(image, config)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, tarball.WriteToFile(path, name.MustParseReference("ringcap.local/x:demo"), image))
}

// registry starts CNCF distribution, and returns HOST:PORT.
func registry(t *testing.T) string {
	t.Helper()
	program := os.Getenv("RINGCAP_REGISTRY")
	if program == "" {
		t.Skip("RINGCAP_REGISTRY names no registry: release/test")
	}
	command := exec.CommandContext(t.Context(), program, t.TempDir())
	stop, err := command.StdinPipe()
	require.NoError(t, err)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	command.Stderr = io.Discard
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = stop.Close()
		_ = command.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(address)
}

func opened(t *testing.T, folder, registry string) *target {
	t.Helper()
	target, err := open(context.Background(), folder, registry)
	require.NoError(t, err)
	return target
}

func pushed(t *testing.T, folder, registry string) *target {
	t.Helper()
	target := opened(t, folder, registry)
	require.NoError(t, target.push())
	return target
}

// TestTwoReleasesAreTheSameBytes: of the same content, each file, and so each digest.
func TestTwoReleasesAreTheSameBytes(t *testing.T) {
	one, two := hashes(t, released(t, "")), hashes(t, released(t, ""))
	require.NotEmpty(t, one)
	require.Equal(t, one, two)
	require.NotEqual(t, one, hashes(t, released(t, "other")))
}

func hashes(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, folder)] = fmt.Sprintf("%x", sha256.Sum256(body))
		return err
	}))
	return found
}

// TestEveryImageIsPulledByDigest: for each of its platforms, with the file that was put into it, labels, and an SBOM that lists the file.
func TestEveryImageIsPulledByDigest(t *testing.T) {
	host := registry(t)
	release := pushed(t, released(t, ""), host+"/some/path")
	images, err := release.entries(imageName)
	require.NoError(t, err)
	require.Len(t, images, 3)
	for _, image := range images {
		name := image.Annotations[imageName]
		repository, err := release.repository(name)
		require.NoError(t, err)
		index, err := remote.Index(repository.Digest(image.Digest.String()))
		require.NoError(t, err)
		manifest, err := index.IndexManifest()
		require.NoError(t, err)
		for _, entry := range manifest.Manifests {
			checkImage(t, repository, entry, entry.Platform.Architecture+"/"+name)
		}
		statement := attachedDocument(t, repository.Digest(image.Digest.String()))
		require.Equal(t, "https://slsa.dev/provenance/v1", statement["predicateType"])
	}
	require.NoError(t, release.verify(""))
	require.NoError(t, release.push(), "what is there already is no error")
}

func checkImage(t *testing.T, repository name.Repository, entry v1.Descriptor, content string) {
	t.Helper()
	image, err := remote.Image(repository.Digest(entry.Digest.String()))
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, entry.Platform.Architecture, config.Architecture)
	require.Equal(t, "0a0b", config.Config.Labels["org.opencontainers.image.revision"])
	extracted := mutate.Extract(image)
	defer extracted.Close()
	archive := tar.NewReader(extracted)
	_, err = archive.Next()
	require.NoError(t, err)
	body, err := io.ReadAll(archive)
	require.NoError(t, err)
	require.Equal(t, content, string(body))
	sbom := attachedDocument(t, repository.Digest(entry.Digest.String()))
	require.Equal(t, "SPDX-2.3", sbom["spdxVersion"])
	text, err := json.Marshal(sbom)
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprintf("%x", sha256.Sum256(body)))
}

// attachedDocument returns the one document that is attached to something, as a registry lists it.
func attachedDocument(t *testing.T, subject name.Digest) map[string]any {
	t.Helper()
	index, err := remote.Referrers(subject)
	require.NoError(t, err)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	image, err := remote.Image(subject.Digest(manifest.Manifests[0].Digest.String()))
	require.NoError(t, err)
	layers, err := image.Layers()
	require.NoError(t, err)
	content, err := layers[0].Compressed()
	require.NoError(t, err)
	defer content.Close()
	var document map[string]any
	require.NoError(t, json.NewDecoder(content).Decode(&document))
	return document
}

func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program := os.Getenv("RINGCAP_HELM")
	if program == "" {
		t.Skip("RINGCAP_HELM names no helm: release/test")
	}
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir())
	out, err := command.CombinedOutput()
	return string(out), err
}

// TestHelmInstallsFromTheRegistry: the real helm pulls the chart, and what it renders has images of that registry, by digest only.
func TestHelmInstallsFromTheRegistry(t *testing.T) {
	host := registry(t) + "/p"
	release := pushed(t, released(t, ""), host)
	folder := t.TempDir()
	tag, err := release.chartTag()
	require.NoError(t, err)
	install, err := release.install(tag)
	require.NoError(t, err)
	require.Regexp(t, `^helm install ringcap oci://.* --plain-http$`, install, "this registry has no TLS")
	out, err := helm(t, "pull", "oci://"+host+"/charts/ringcap", "--version", release.chart.version, "--plain-http", "--destination", folder)
	require.NoError(t, err, out)
	archive := filepath.Join(folder, "ringcap-"+release.chart.version+".tgz")
	out, err = helm(t, "lint", "--strict", archive)
	require.NoError(t, err, out)
	out, err = helm(t, "template", "ringcap", archive)
	require.NoError(t, err, out)
	images := regexp.MustCompile(`(?m)^ +image: (.*)$`).FindAllStringSubmatch(out, -1)
	require.NotEmpty(t, images)
	for _, image := range images {
		require.Regexp(t, `^`+regexp.QuoteMeta(host)+`/(agent|operator)@sha256:[0-9a-f]{64}$`, image[1])
		digest, err := name.NewDigest(image[1])
		require.NoError(t, err)
		_, err = remote.Head(digest)
		require.NoError(t, err, "a node pulls this")
	}
	example, err := os.ReadFile(filepath.Join(release.folder, "pushed", "examples", "one.yaml"))
	require.NoError(t, err)
	require.Regexp(t, `^image: `+regexp.QuoteMeta(host)+`/tcpdump@sha256:[0-9a-f]{64}\nimage: ringcap.local/snort:demo\n$`, string(example))
	out, err = helm(t, "pull", "oci://"+host+"/charts/ringcap", "--version", "9.9.9", "--plain-http", "--destination", folder)
	require.Error(t, err)
	require.Contains(t, out, "9.9.9")
}

// TestSignatures: cosign's format, checked with the public key alone.
func TestSignatures(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))

	release := opened(t, released(t, ""), registry(t)+"/p")
	release.key, err = loadKey(file)
	require.NoError(t, err)
	require.NoError(t, release.push())
	images, err := release.entries(imageName)
	require.NoError(t, err)
	for _, image := range images {
		repository, err := release.repository(image.Annotations[imageName])
		require.NoError(t, err)
		checkSignature(t, &private.PublicKey, repository, image.Digest)
	}
	chart, err := release.chartTag()
	require.NoError(t, err)
	there, err := remote.Head(chart)
	require.NoError(t, err)
	checkSignature(t, &private.PublicKey, chart.Repository, there.Digest)

	_, err = loadKey("release_test.go")
	require.ErrorContains(t, err, "must be a private key in PEM")
	_, err = loadKey("nowhere")
	require.ErrorContains(t, err, "nowhere")
}

func checkSignature(t *testing.T, public *ecdsa.PublicKey, repository name.Repository, digest v1.Hash) {
	t.Helper()
	signature, err := remote.Image(repository.Tag("sha256-" + digest.Hex + ".sig"))
	require.NoError(t, err)
	manifest, err := signature.Manifest()
	require.NoError(t, err)
	layers, err := signature.Layers()
	require.NoError(t, err)
	content, err := layers[0].Compressed()
	require.NoError(t, err)
	defer content.Close()
	statement, err := io.ReadAll(content)
	require.NoError(t, err)
	require.Contains(t, string(statement), digest.String())
	raw, err := base64.StdEncoding.DecodeString(manifest.Layers[0].Annotations["dev.cosignproject.cosign/signature"])
	require.NoError(t, err)
	hash := sha256.Sum256(statement)
	require.True(t, ecdsa.VerifyASN1(public, hash[:], raw))
}

// TestRegistriesThatFail: each failure says what it is and what to do.
func TestRegistriesThatFail(t *testing.T) {
	folder := released(t, "")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	require.ErrorContains(t, opened(t, folder, closed.Addr().String()).push(), "is it up")

	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer refusing.Close()
	host := strings.TrimPrefix(refusing.URL, "http://")
	require.ErrorContains(t, opened(t, folder, host).push(), "docker login "+host)

	for _, wrong := range []string{"https://host/path", "oci://host", "", "host:5000/UPPER", "host:x y"} {
		_, err := open(t.Context(), folder, wrong)
		require.ErrorContains(t, err, "HOST[:PORT]", wrong)
	}
	_, err = open(t.Context(), t.TempDir(), "localhost:5000")
	require.ErrorContains(t, err, "make release")
}

// TestWhatDiffersInTheRegistry: another architecture, a tag that was moved, a digest that is not there.
func TestWhatDiffersInTheRegistry(t *testing.T) {
	host := registry(t)
	release := pushed(t, released(t, ""), host)
	require.ErrorContains(t, release.verify("linux/arm64"), "is not for linux/arm64, but for [linux/amd64]")
	require.NotContains(t, release.verify("linux/arm64").Error(), "agent")
	require.NoError(t, release.verify("linux/amd64"))

	other := opened(t, released(t, "other"), host)
	require.ErrorContains(t, other.push(), "is another one already")
	require.ErrorContains(t, other.verify(""), "is not there: make push REGISTRY="+host)
	other.force = true
	require.NoError(t, other.push())
	require.NoError(t, other.verify(""))
	moved := release.verify("")
	for _, image := range []string{"operator", "agent", "tcpdump", "charts/ringcap"} {
		require.ErrorContains(t, moved, host+"/"+image+":"+release.chart.version+" was moved")
	}
}

// TestReleasesThatCannotBe: an archive of another architecture, and images that are not there.
func TestReleasesThatCannotBe(t *testing.T) {
	archives := t.TempDir()
	writeArchive(t, filepath.Join(archives, "arm64", "agent.tar"), "amd64", "x")
	r := recipe{chart: "../charts/ringcap", archives: archives, out: t.TempDir()}
	require.ErrorContains(t, r.make([]string{"agent"}), "is for amd64")
	require.ErrorContains(t, r.make([]string{"operator"}), "no archive")
	writeArchive(t, filepath.Join(archives, "arm64", "agent.tar"), "arm64", "x")
	require.ErrorContains(t, r.make([]string{"agent"}), "needs the image operator")
	r.chart = "../charts"
	require.ErrorContains(t, r.make([]string{"agent"}), "Chart.yaml")
}
