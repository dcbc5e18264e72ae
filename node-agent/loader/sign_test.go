// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// signingFolder has a new key and its certificate.
func signingFolder(t *testing.T, key any, public any) string {
	t.Helper()
	folder := t.TempDir()
	template := &x509.Certificate{SerialNumber: big.NewInt(0xabcdef), Subject: pkix.Name{CommonName: "modules", Organization: []string{"test"}}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: certificate}, "tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600))
	}
	return folder
}

// TestOpenSSLVerifies: another implementation finds the signature right over the module, and wrong over another one. The
// kernel's own is asked in a VM.
func TestOpenSSLVerifies(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	folder := signingFolder(t, key, key.Public())
	signer, err := ReadSigner(folder)
	require.NoError(t, err)
	module := []byte("a module\x00 of some bytes")
	signed, err := signer.Sign(module)
	require.NoError(t, err)

	// As the kernel takes it apart, from the end.
	rest := signed[:len(signed)-len(signatureMark)]
	require.Equal(t, signatureMark, string(signed[len(rest):]))
	info := rest[len(rest)-12:]
	require.Equal(t, []byte{0, 0, typePKCS7, 0, 0, 0, 0, 0}, info[:8])
	rest = rest[:len(rest)-12]
	content, message := rest[:len(module)], rest[len(module):]
	require.Equal(t, module, content)
	require.EqualValues(t, len(message), binary.BigEndian.Uint32(info[8:]))

	verify := func(content []byte) error {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "message"), message, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "content"), content, 0o600))
		command := exec.Command("openssl", "cms", "-verify", "-binary", "-inform", "DER", "-in", "message", "-content", "content",
			"-certfile", "tls.crt", "-CAfile", "tls.crt", "-noverify", "-out", "/dev/null")
		command.Dir = folder
		return command.Run()
	}
	require.NoError(t, verify(module))
	require.Error(t, verify([]byte("another module, not this")))
}

func TestKeysThatAreNoneAreRefused(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, err = ReadSigner(signingFolder(t, key, key.Public()))
	require.ErrorContains(t, err, "make it of type RSA")
	_, err = ReadSigner(t.TempDir())
	require.ErrorContains(t, err, "read the key that signs modules from")
}
