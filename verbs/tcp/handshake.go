//go:build linux

package tcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// These are the offsets of the fields of a handshake's frames, behind the first eight
// bytes.
const (
	offHelloNonce   = 8
	offHelloMagic   = offHelloNonce + nonceSize
	offHelloVersion = offHelloMagic + 4

	offMAC          = 8 // kindOpen, kindOpened, kindProof
	offOpenAcceptor = offMAC + macSize
	offOpenDialer   = offOpenAcceptor + 4

	nonceSize = 32
	macSize   = sha256.Size

	helloMagic   = 0x48544750 // "PGTH"
	helloVersion = 6
)

// These limits bound the steps of a handshake.
const (
	handshakeTimeout = 5 * time.Second
	maxStrangers     = 64  // accepted connections without a correct OPEN
	maxOpenings      = 4   // streams that wait for one queue pair
	maxEarly         = 128 // connections with streams for queue pairs in INIT alone
)

// A nonce is the random bytes of one end that all proofs of a connection cover.
type nonce [nonceSize]byte

// greet draws the nonce of this end and sends it.
func (l *link) greet(own *nonce) {
	rand.Read(own[:])
	b := l.out.extend(headerSizes[kindHello])
	(&frame{kind: kindHello}).encode(b)
	binary.LittleEndian.PutUint32(b[offHelloMagic:], helloMagic)
	binary.LittleEndian.PutUint32(b[offHelloVersion:], helloVersion)
	copy(b[offHelloNonce:], own[:])
}

// greeted reads the peer's HELLO, the first frame of a connection.
func (l *link) greeted(f *frame, b []byte) error {
	if l.phase != phaseHello || f.stream != 0 || binary.LittleEndian.Uint32(b[offHelloMagic:]) != helloMagic ||
		binary.LittleEndian.Uint32(b[offHelloVersion:]) != helloVersion {
		return errProtocol
	}
	l.phase = phaseOpen
	if l.outgoing {
		copy(l.acceptor[:], b[offHelloNonce:])
	} else {
		copy(l.dialer[:], b[offHelloNonce:])
	}
	return nil
}

// mac returns HMAC-SHA256 over kind, numbers and nonces. The acceptor's secret alone
// keys the MAC of an OPEN, since the acceptor may not know its peer yet. The OPEN may
// leave before the acceptor's nonce is known. Both secrets key all later MACs.
func (s *stream) mac(k kind, secrets ...token) []byte {
	key := make([]byte, 0, 2*tokenSize)
	for i := range secrets {
		key = append(key, secrets[i][:]...)
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte("gopgas tcp"))
	m.Write(s.link.binding)
	var numbers [16]byte
	binary.LittleEndian.PutUint32(numbers[0:], uint32(k))
	binary.LittleEndian.PutUint32(numbers[4:], s.id)
	binary.LittleEndian.PutUint32(numbers[8:], s.acceptorQP)
	binary.LittleEndian.PutUint32(numbers[12:], s.dialerQP)
	m.Write(numbers[:])
	m.Write(s.link.dialer[:])
	if k != kindOpen {
		m.Write(s.link.acceptor[:])
	}
	return m.Sum(nil)
}
