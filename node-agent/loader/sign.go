// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"fmt"
	"math/big"
	"path/filepath"
)

// Signer signs modules for kernels that trust its certificate.
type Signer struct {
	key         *rsa.PrivateKey
	certificate *x509.Certificate
}

// ReadSigner reads tls.key and tls.crt from a folder, as in a Secret of type kubernetes.io/tls. It requires RSA,
// because kernels of all ages understand it.
func ReadSigner(folder string) (*Signer, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("read the key that signs modules from %s: %w", folder, err)
	}
	key, ok := pair.PrivateKey.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the key that signs modules, in %s, is of type %T: make it of type RSA", folder, pair.PrivateKey)
	}
	return &Signer{key: key, certificate: pair.Leaf}, nil
}

// Object identifiers of RFC 5652 and RFC 3447.
var (
	oidData       = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}
	oidSignedData = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2}
	oidSHA256     = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}
	oidRSA        = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}
)

// These types are a SignedData of RFC 5652 in the form that the kernel reads: over detached content, with no
// certificate and no attributes.
type (
	contentInfo struct {
		Type    asn1.ObjectIdentifier
		Content signedData `asn1:"explicit,tag:0"`
	}
	signedData struct {
		Version          int
		DigestAlgorithms []pkix.AlgorithmIdentifier `asn1:"set"`
		Encapsulated     struct{ Type asn1.ObjectIdentifier }
		Signers          []signerInfo `asn1:"set"`
	}
	signerInfo struct {
		Version            int
		Issuer             issuerAndSerial
		DigestAlgorithm    pkix.AlgorithmIdentifier
		SignatureAlgorithm pkix.AlgorithmIdentifier
		Signature          []byte
	}
	issuerAndSerial struct {
		Issuer asn1.RawValue
		Serial *big.Int
	}
)

// signatureInfo is the kernel's struct module_signature.
type signatureInfo struct {
	Algorithm, Hash, Type, SignerLength, KeyIDLength uint8
	_                                                [3]uint8
	Length                                           uint32
}

// typePKCS7 is the kernel's PKEY_ID_PKCS7.
const typePKCS7 = 2

// Sign returns the module with an appended signature.
func (s *Signer) Sign(module []byte) ([]byte, error) {
	message, err := s.message(module)
	if err != nil {
		return nil, fmt.Errorf("sign the module: %w", err)
	}
	signed := append(append([]byte{}, module...), message...)
	signed, err = binary.Append(signed, binary.BigEndian, signatureInfo{Type: typePKCS7, Length: uint32(len(message))})
	return append(signed, signatureMark...), err
}

// message returns the SignedData over a module.
func (s *Signer) message(module []byte) ([]byte, error) {
	digest := sha256.Sum256(module)
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, digest[:])
	if err != nil {
		return nil, err
	}
	hash := pkix.AlgorithmIdentifier{Algorithm: oidSHA256, Parameters: asn1.NullRawValue}
	data := signedData{Version: 1, DigestAlgorithms: []pkix.AlgorithmIdentifier{hash}}
	data.Encapsulated.Type = oidData
	data.Signers = []signerInfo{{
		Version:            1,
		Issuer:             issuerAndSerial{Issuer: asn1.RawValue{FullBytes: s.certificate.RawIssuer}, Serial: s.certificate.SerialNumber},
		DigestAlgorithm:    hash,
		SignatureAlgorithm: pkix.AlgorithmIdentifier{Algorithm: oidRSA, Parameters: asn1.NullRawValue},
		Signature:          signature,
	}}
	return asn1.Marshal(contentInfo{Type: oidSignedData, Content: data})
}
