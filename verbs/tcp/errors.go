//go:build linux

package tcp

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/gopgas/gopgas/verbs/driver"
)

var (
	errProtocol     = errors.New("tcp: the peer broke the protocol")
	errPeerClosed   = errors.New("tcp: the peer closed the connection")
	errRegionClosed = errors.New("tcp: a region was closed while a peer read it")
	errUnproven     = errors.New("tcp: the other end does not know the secret of the queue pair")
	errTruncated    = errors.New("the connection ended without TLS's close_notify: the peer died, or something between the hosts cut it")
	errTLSDiffers   = errors.New("one end uses TLS and the other does not")
	errSilent       = errors.New("tcp: no sign of life from the peer")
)

// A TLSError reports that TLS failed on a connection. Err is the reason: an error of
// crypto/tls, an alert of the peer, or the end of the connection without close_notify.
type TLSError struct {
	Peer      netip.AddrPort // the zero value if it is unknown
	Handshake bool           // the connection never stood
	Err       error
}

func (e *TLSError) Error() string {
	if e.Handshake {
		return fmt.Sprintf("tcp: no TLS connection with %v: %v; give both ends TLS with the same keys, or neither", e.Peer, e.Err)
	}
	return fmt.Sprintf("tcp: TLS connection with %v broke: %v; look for what changes or cuts connections between the hosts", e.Peer, e.Err)
}

func (e *TLSError) Unwrap() error { return e.Err }

// lost joins cause to driver.ErrLost.
func lost(cause error) error { return &lostError{cause} }

// A lostError is ErrLost with the event that ended the connection.
type lostError struct{ cause error }

func (e *lostError) Error() string   { return driver.ErrLost.Error() + ": " + e.cause.Error() }
func (e *lostError) Unwrap() []error { return []error{driver.ErrLost, e.cause} }
