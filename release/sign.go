// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// loadKey reads a private key in PEM: of openssl, or of cosign with its password in COSIGN_PASSWORD.
func loadKey(path string) (signature.Signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the key: %w", err)
	}
	password := func(bool) ([]byte, error) { return []byte(os.Getenv("COSIGN_PASSWORD")), nil }
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(text, password)
	if err != nil {
		return nil, fmt.Errorf("the key %s: %w: it must be a private key in PEM; the password of cosign's keys is in COSIGN_PASSWORD", path, err)
	}
	return signature.LoadSigner(private, crypto.SHA256)
}

// sign returns a signature in base64.
func sign(key signature.Signer, message []byte) (string, error) {
	raw, err := key.SignMessage(bytes.NewReader(message))
	return base64.StdEncoding.EncodeToString(raw), err
}

// signatureOf returns the tag and the content by which `cosign verify --key` finds the signature of what has that digest.
func signatureOf(key signature.Signer, signed name.Digest) (name.Tag, v1.Image, error) {
	statement, err := json.Marshal(payload.Cosign{Image: signed})
	if err != nil {
		return name.Tag{}, nil, err
	}
	signature, err := sign(key, statement)
	if err != nil {
		return name.Tag{}, nil, err
	}
	content := blob{statement, "application/vnd.dev.cosign.simplesigning.v1+json"}
	diff, err := content.Digest()
	if err != nil {
		return name.Tag{}, nil, err
	}
	config, err := json.Marshal(v1.ConfigFile{RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{diff}}})
	if err != nil {
		return name.Tag{}, nil, err
	}
	a, err := newArtifact(content, blob{config, types.OCIConfigJSON}, map[string]string{"dev.cosignproject.cosign/signature": signature}, nil)
	if err != nil {
		return name.Tag{}, nil, err
	}
	hash, err := v1.NewHash(signed.DigestStr())
	if err != nil {
		return name.Tag{}, nil, err
	}
	image, err := a.image()
	return signed.Tag(hash.Algorithm + "-" + hash.Hex + ".sig"), image, err
}
