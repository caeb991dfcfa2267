package tcp

import (
	"errors"

	"github.com/gopgas/gopgas/verbs/driver"
)

var (
	errProtocol     = errors.New("tcp: the peer broke the protocol")
	errPeerClosed   = errors.New("tcp: the peer closed the connection")
	errRegionClosed = errors.New("tcp: a region was closed while a peer read it")
	errUnproven     = errors.New("tcp: the other end does not know the secret of the queue pair")
	errSilent       = errors.New("tcp: no sign of life from the peer")
)

// lost joins cause to driver.ErrLost.
func lost(cause error) error { return &lostError{cause} }

type lostError struct{ cause error }

func (e *lostError) Error() string   { return driver.ErrLost.Error() + ": " + e.cause.Error() }
func (e *lostError) Unwrap() []error { return []error{driver.ErrLost, e.cause} }
