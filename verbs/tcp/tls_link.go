//go:build linux

package tcp

import (
	"io"

	"golang.org/x/sys/unix"
)

// secure begins the TLS handshake of the dialer, or prepares that of the acceptor.
func (l *link) secure() error {
	l.phase = phaseTLS
	l.tls = newSecured(l.fd, l.dev.tls, l.outgoing)
	if !l.outgoing {
		return nil
	}
	if err := l.shake(); err != nil {
		return err
	}
	l.flush()
	return nil
}

// shake goes on with the handshake of TLS. Behind it, the handshake of the streams begins.
func (l *link) shake() error {
	ended, err := l.tls.step()
	if !ended {
		return nil
	}
	if err != nil {
		l.tls.warn(l.fd)
		return l.tls.failed(err)
	}
	if l.binding, err = l.tls.binding(); err != nil {
		return l.tls.failed(err)
	}
	if l.outgoing {
		l.reached()
	} else {
		l.phase = phaseHello
	}
	return nil
}

// readRecords is readInbox of a connection with TLS: it reads from the socket once, and
// processes all records that are complete.
func (l *link) readRecords() (full bool, err error) {
	n, errno := receive(l.fd, l.dev.scratch)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return false, nil
	case errno != 0:
		return false, errno
	case l.in.dead:
		return false, endOf(n)
	case n == 0:
		return false, l.tls.failed(errTruncated)
	}
	full = n == len(l.dev.scratch)
	l.tls.arrived = l.dev.scratch[:n]
	if l.phase == phaseTLS {
		if err := l.shake(); err != nil || l.phase == phaseTLS {
			return full, err
		}
	}
	return full, l.decrypt()
}

// endOf returns errPeerClosed for a read without bytes.
func endOf(n int) error {
	if n == 0 {
		return errPeerClosed
	}
	return nil
}

// decrypt processes the plaintext of all complete records. It has long payloads decrypted
// into their destination.
func (l *link) decrypt() error {
	in := &l.in
	for !in.dead {
		var n int
		var err, refused error
		if in.left >= directMin && !in.to.discard {
			n, err = l.tls.read(in.to.front(in.left))
			in.to.off += n
			if in.left -= n; in.left == 0 {
				refused = l.finish()
			}
		} else {
			n, err = l.tls.read(l.dev.plain)
			refused = l.process(l.dev.plain[:n])
		}
		switch {
		case refused != nil:
			return refused
		case err == errNoBytes: //nolint:errorlint // read returns it as it is
			return nil
		case err == io.EOF: //nolint:errorlint // read returns it as it is
			return errPeerClosed
		case err != nil:
			l.tls.warn(l.fd)
			return err
		}
	}
	l.tls.arrived = nil // the rest is discarded
	return nil
}
