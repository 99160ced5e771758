// Package pki makes the certificates that a cluster of one machine needs.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// validity is longer than any test cluster lives, because certificates are not renewed.
const validity = 5 * 365 * 24 * time.Hour

// A Pair is a certificate and its key, both in PEM.
type Pair struct {
	Cert []byte
	Key  []byte
}

// A Subject is the owner of a certificate. With Hosts (names or addresses) the certificate is for a server, without
// them for a client.
type Subject struct {
	Name   string
	Groups []string
	Hosts  []string
}

// An Authority signs certificates.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  time.Time
}

// NewAuthority makes an authority whose certificates are valid from now.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making key of %s: %w", name, err)
	}
	cert := template(Subject{Name: name}, now)
	cert.IsCA, cert.BasicConstraintsValid = true, true
	cert.KeyUsage, cert.ExtKeyUsage = x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature, nil
	a := &Authority{cert: cert, key: key, now: now}
	if a.Pair, err = a.sign(cert, key); err != nil {
		return nil, err
	}
	// Signing filled in what children must repeat, such as the key's id.
	block, _ := pem.Decode(a.Cert)
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, fmt.Errorf("reading back certificate of %s: %w", name, err)
	}
	return a, nil
}

// Issue makes a certificate and its key.
func (a *Authority) Issue(s Subject) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making key of %s: %w", s.Name, err)
	}
	return a.sign(template(s, a.now), key)
}

// NewKey makes a key without a certificate.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making key: %w", err)
	}
	return encodeKey(key)
}

func (a *Authority) sign(cert *x509.Certificate, key *ecdsa.PrivateKey) (Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, fmt.Errorf("choosing serial number: %w", err)
	}
	cert.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing certificate of %s: %w", cert.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM}, nil
}

func template(s Subject, now time.Time) *x509.Certificate {
	cert := &x509.Certificate{
		Subject:     pkix.Name{CommonName: s.Name, Organization: s.Groups},
		NotBefore:   now.Add(-time.Hour), // clocks of other machines may be behind
		NotAfter:    now.Add(validity),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, h := range s.Hosts {
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if ip := net.ParseIP(h); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else {
			cert.DNSNames = append(cert.DNSNames, h)
		}
	}
	return cert
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
