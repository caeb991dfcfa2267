package tcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// These are the messages of the handshake; the package comment shows them.
const (
	helloMagic   = 0x48544750 // "PGTH"
	helloVersion = 2

	offHelloVersion  = 4
	offHelloAcceptor = 8
	offHelloDialer   = 12
	offHelloNonce    = 16
	offHelloMAC      = offHelloNonce + nonceSize

	nonceSize     = 32
	macSize       = sha256.Size
	helloSize     = offHelloMAC + macSize
	challengeSize = nonceSize + macSize
)

// These limits bound the steps of a handshake.
const (
	handshakeTimeout = 5 * time.Second
	maxStrangers     = 64 // accepted connections without a correct hello
	maxParked        = 4  // connections that wait for one queue pair to know its peer
)

type nonce [nonceSize]byte

// handshake holds the fields that both ends keep of their handshake.
type handshake struct {
	buf              [helloSize]byte // of the longest message
	have             int
	dialer, acceptor nonce
	acceptorQP       uint32
	dialerQP         uint32
}

// mac returns HMAC-SHA256 over label, queue pair numbers and nonces. The acceptor's
// secret alone keys the hello, since the acceptor may not know its peer yet. Both
// secrets key all later messages.
func (h *handshake) mac(label string, secrets ...token) []byte {
	key := make([]byte, 0, 2*tokenSize)
	for i := range secrets {
		key = append(key, secrets[i][:]...)
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte("gopgas tcp " + label))
	var numbers [8]byte
	binary.LittleEndian.PutUint32(numbers[0:], h.acceptorQP)
	binary.LittleEndian.PutUint32(numbers[4:], h.dialerQP)
	m.Write(numbers[:])
	m.Write(h.dialer[:])
	m.Write(h.acceptor[:])
	return m.Sum(nil)
}

func (h *handshake) hello(acceptor *address, dialerQP uint32) []byte {
	*h = handshake{acceptorQP: acceptor.qp, dialerQP: dialerQP}
	rand.Read(h.dialer[:])
	b := make([]byte, helloSize)
	binary.LittleEndian.PutUint32(b, helloMagic)
	binary.LittleEndian.PutUint16(b[offHelloVersion:], helloVersion)
	binary.LittleEndian.PutUint32(b[offHelloAcceptor:], h.acceptorQP)
	binary.LittleEndian.PutUint32(b[offHelloDialer:], h.dialerQP)
	copy(b[offHelloNonce:], h.dialer[:])
	copy(b[offHelloMAC:], h.mac("hello", acceptor.token))
	return b
}

// parseHello fills h from a hello. It does not check the MAC.
func (h *handshake) parseHello(b []byte) (mac []byte, ok bool) {
	if len(b) != helloSize || binary.LittleEndian.Uint32(b) != helloMagic ||
		binary.LittleEndian.Uint32(b[offHelloVersion:]) != helloVersion {
		return nil, false
	}
	h.acceptorQP = binary.LittleEndian.Uint32(b[offHelloAcceptor:])
	h.dialerQP = binary.LittleEndian.Uint32(b[offHelloDialer:])
	copy(h.dialer[:], b[offHelloNonce:])
	return b[offHelloMAC:], true
}

// challenge draws the acceptor's nonce and proves that it knows both secrets.
func (h *handshake) challenge(acceptor, dialer token) []byte {
	rand.Read(h.acceptor[:])
	return append(append([]byte(nil), h.acceptor[:]...), h.mac("challenge", acceptor, dialer)...)
}

// read collects exactly size bytes, and none of the next message.
func (l *link) read(size int) (done bool, err error) {
	h := &l.hs
	n, errno := receive(l.fd, h.buf[h.have:size])
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return false, nil
	case errno != 0:
		return false, errno
	case n == 0:
		return false, errPeerClosed
	}
	if h.have += n; h.have < size {
		return false, nil
	}
	h.have = 0
	return true, nil
}

// write sends a message of the handshake, for which a fresh socket has room.
func (l *link) write(b []byte) error {
	n, errno := send(l.fd, b)
	if errno != 0 {
		return errno
	}
	if n < len(b) {
		return errSilent
	}
	return nil
}

// advance takes the next step that the socket allows.
func (l *link) advance() error {
	switch l.phase {
	case phaseDial:
		return l.dialed()
	case phaseChallenge:
		return l.challenged()
	case phaseWelcome:
		return l.welcomed()
	case phaseHello:
		return l.greeted()
	case phaseProof:
		return l.proven()
	}
	return errProtocol // a parked dialer sends nothing until it closes
}
