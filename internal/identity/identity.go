// Package identity makes the TLS identity of a job from the job's secret.
//
//	secret --HKDF, use--> Ed25519 key --> certificate signed by itself
//
// Each process of the job derives the same key. Both sides of a connection show a
// certificate of that key, and check that the peer's certificate has it. So joining a
// job needs its secret and no file. Certificates of other jobs, and of other uses in
// this job, have other keys. A certificate has no end, and the peer does not look at
// its times: a wrong clock breaks no job.
package identity

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// A Use names the connections that a key is for.
type Use string

// The uses.
const (
	Rendezvous Use = "rendezvous" // between a rank and the rendezvous
	Data       Use = "data"       // between ranks, over provider tcp
)

// ErrStranger reports that the peer's key is not that of the job.
var ErrStranger = errors.New("the peer has another secret: give all ranks of the job the same one")

// Config returns the TLS settings of both ends of a connection. The secret must be
// random: anyone can test guesses of it against a recorded handshake's public key.
func Config(secret []byte, use Use) (*tls.Config, error) {
	seed, err := hkdf.Key(sha256.New, secret, nil, "gopgas tls 1 "+string(use), ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive the key for TLS: %w", err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	own, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("derive the key for TLS: not an Ed25519 key")
	}
	cert, err := certificate(key, own)
	if err != nil {
		return nil, fmt.Errorf("make the certificate for TLS: %w", err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{cert},
		ClientAuth:   tls.RequireAnyClientCert,
		// VerifyConnection replaces the check of names and chains, at both ends.
		InsecureSkipVerify:          true,
		VerifyConnection:            func(s tls.ConnectionState) error { return check(s, own) },
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true, // records are full from the first one on
	}, nil
}

// certificate signs a certificate of key by key.
func certificate(key ed25519.PrivateKey, own ed25519.PublicKey) (tls.Certificate, error) {
	template := x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: no end
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, own, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// check refuses a peer whose key is not own. The handshake has proved that the peer
// holds the private key of its first certificate.
func check(s tls.ConnectionState, own ed25519.PublicKey) error {
	if len(s.PeerCertificates) > 0 && own.Equal(s.PeerCertificates[0].PublicKey) {
		return nil
	}
	return ErrStranger
}
