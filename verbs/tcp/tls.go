//go:build linux

package tcp

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// tlsBatch is the number of plaintext bytes that a connection encrypts before the socket
// takes them.
const tlsBatch = 64 << 10

// maxRecord is the longest plaintext of a record.
const maxRecord = 16 << 10

// maxResponses bounds the bytes that TLS itself may queue, as responses to KeyUpdates. A
// peer that sends KeyUpdates and reads no responses loses its connection.
const maxResponses = 2 * tlsBatch

// A secured is the TLS layer of a connection, between its outbox and inbox and the socket.
// It stands on a transport in memory, so it never waits for the socket:
//
//	outbox --plaintext--> conn --records--> leaving --send--> socket
//	inbox  <--plaintext-- conn <--records-- arrived <--recv-- socket
//
// The locks of the connection guard it. The handshake runs in a goroutine of its own, by
// turns: that goroutine runs only while step waits for it.
type secured struct {
	conn    *tls.Conn
	peer    netip.AddrPort
	arrived []byte // records that conn has not read
	leaving []byte // records for the socket
	sent    int    // bytes of leaving that the socket has taken
	open    bool   // the handshake has succeeded
	ending  bool   // close_notify leaves behind the queued frames
	ended   bool   // it is in leaving

	turn    chan struct{} // starts or resumes the handshake; closed: the connection is over
	yielded chan bool     // the handshake waits for bytes, or, if false, has ended
	failure error         // of the handshake
}

// newSecured makes the TLS layer of a socket. It sends and reads nothing yet.
func newSecured(fd int, config *tls.Config, client bool) *secured {
	s := &secured{peer: peerOf(fd)}
	if client {
		s.conn = tls.Client(transport{s}, config)
	} else {
		s.conn = tls.Server(transport{s}, config)
	}
	return s
}

// peerOf returns the peer's address, or the zero value if the connection is over.
func peerOf(fd int) netip.AddrPort {
	sa, err := unix.Getpeername(fd)
	if err != nil {
		return netip.AddrPort{}
	}
	return endpointOf(sa)
}

// step runs the handshake until it needs more bytes, or has ended.
func (s *secured) step() (ended bool, err error) {
	if s.turn == nil {
		s.turn, s.yielded = make(chan struct{}), make(chan bool, 1)
		go s.shake()
	}
	s.turn <- struct{}{}
	if <-s.yielded {
		return false, nil
	}
	s.turn = nil
	s.open = s.failure == nil
	return true, s.failure
}

// shake is the goroutine of the handshake.
func (s *secured) shake() {
	if _, more := <-s.turn; more {
		s.failure = s.conn.Handshake()
	}
	s.yielded <- false
}

// stop ends a handshake that waits for bytes. It is idempotent.
func (s *secured) stop() {
	if s.turn != nil {
		close(s.turn)
		<-s.yielded
		s.turn = nil
	}
}

// binding returns bytes that both ends of this TLS connection know, and no end of another
// one.
func (s *secured) binding() ([]byte, error) {
	state := s.conn.ConnectionState()
	return state.ExportKeyingMaterial("EXPORTER-gopgas-tcp", nil, 32)
}

// idle reports whether the socket has taken all records.
func (s *secured) idle() bool { return s.sent == len(s.leaving) && s.ended == s.ending }

// write encrypts frames of the outbox and sends the records, until the outbox is empty or
// the socket is full.
func (s *secured) write(fd int, o *outbox) unix.Errno {
	for !o.empty() || !s.idle() {
		if s.sent == len(s.leaving) {
			s.leaving, s.sent = s.leaving[:0], 0
			if err := s.encrypt(o); err != nil {
				return unix.EPIPE // conn has sent an alert: its reader has the cause
			}
		}
		n, errno := send(fd, s.leaving[s.sent:])
		if errno != 0 {
			return errno
		}
		s.sent += n
	}
	return 0
}

// encrypt turns the oldest tlsBatch bytes of the outbox into records. Behind the last one
// it puts close_notify, if the connection ends.
func (s *secured) encrypt(o *outbox) error {
	if o.empty() {
		s.ended = s.ending
		return s.conn.CloseWrite()
	}
	taken := 0
	for i := 0; i < len(o.pieces) && taken < tlsBatch; i++ {
		mem := o.pieces[i].mem
		n, err := s.conn.Write(mem[:min(len(mem), tlsBatch-taken)])
		if err != nil {
			return err
		}
		taken += n
	}
	o.left(taken)
	return nil
}

// read decrypts bytes into b. It returns errNoBytes if no record is complete, io.EOF behind the
// peer's close_notify, and else a *TLSError. With each of them, n may exceed 0.
func (s *secured) read(b []byte) (n int, err error) {
	n, err = s.conn.Read(b)
	switch {
	case len(s.leaving)-s.sent > maxResponses+tlsBatch:
		return n, s.failed(errProtocol)
	case err == nil || err == io.EOF || errors.Is(err, errNoBytes): //nolint:errorlint // conn wraps no io.EOF
		return n, err
	}
	return n, s.failed(err)
}

// failed describes an error of TLS.
func (s *secured) failed(cause error) error {
	return &TLSError{Peer: s.peer, Handshake: !s.open, Err: cause}
}

// warn sends the alert that conn has queued, if the socket takes it at once: the socket is
// about to be closed.
func (s *secured) warn(fd int) {
	if s.sent < len(s.leaving) {
		send(fd, s.leaving[s.sent:]) // the peer misses the reason, at worst
	}
}

// A transport is the net.Conn under the TLS layer. It never blocks: without bytes, Read
// gives the turn back during the handshake, and returns errNoBytes later.
type transport struct{ s *secured }

// Read returns bytes of records that have arrived. During the handshake it hands the turn back until
// there are some; later it returns errNoBytes, which tls.Conn takes for a timeout.
func (t transport) Read(b []byte) (int, error) {
	s := t.s
	for len(s.arrived) == 0 {
		if s.open {
			return 0, errNoBytes
		}
		s.yielded <- true
		if _, more := <-s.turn; !more {
			return 0, net.ErrClosed
		}
	}
	n := copy(b, s.arrived)
	s.arrived = s.arrived[n:]
	return n, nil
}

func (t transport) Write(b []byte) (int, error) {
	t.s.leaving = append(t.s.leaving, b...)
	return len(b), nil
}

func (transport) Close() error                     { return nil }
func (transport) LocalAddr() net.Addr              { return nil }
func (t transport) RemoteAddr() net.Addr           { return net.TCPAddrFromAddrPort(t.s.peer) }
func (transport) SetDeadline(time.Time) error      { return nil }
func (transport) SetReadDeadline(time.Time) error  { return nil }
func (transport) SetWriteDeadline(time.Time) error { return nil }

// errNoBytes is the temporary error of a transport without bytes. tls.Conn keeps the
// front of a record, and goes on at the next Read.
var errNoBytes error = noBytes{}

// noBytes is a timeout: tls.Conn keeps its state after one.
type noBytes struct{}

func (noBytes) Error() string   { return "tcp: no bytes have arrived" }
func (noBytes) Timeout() bool   { return true }
func (noBytes) Temporary() bool { return true }
