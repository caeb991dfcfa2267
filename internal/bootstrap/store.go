package bootstrap

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Store hands the card of rank 0 to all ranks that another launcher started. The card
// says where the rendezvous is, which rank 0 hosts.
//
//	rank 0    open, listen, publish, ...  serve
//	rank 1    open, find, dial ...............
type Store interface {
	// open completes e, and reports whether all ranks are on one host. An error is a
	// *RefusedError where this process has joined before.
	open(ctx context.Context, e *Env) (oneHost bool, err error)
	// publish hands the card to the store at rank 0.
	publish(ctx context.Context, e *Env, card string) error
	// find returns the card at another rank.
	find(ctx context.Context, e *Env) (card string, err error)
}

// enterByStore joins the job whose rendezvous is found through e.Store.
func (e *Env) enterByStore(ctx context.Context, wait time.Duration) (*Conn, *Server, error) {
	oneHost, err := e.Store.open(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	if e.Rank == 0 {
		return e.hostByStore(ctx, wait, oneHost)
	}
	text, err := e.Store.find(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	card, err := parseCard(text)
	var failed *HostError
	switch {
	case errors.As(err, &failed): // all ranks know, so no process manager need kill them
		return nil, nil, errors.Join(err, e.Manager.Finalize(ctx))
	case err != nil:
		return nil, nil, err
	}
	if card.secret != nil {
		e.Secret = card.secret
	}
	d := newDialer(card.addrs[0], e.Secret, e.joining(wait))
	d.list = card.literal()
	e.Addr = strings.Join(card.addrs, ",")
	c, err := d.join(ctx)
	return c, nil, err
}

// hostByStore hosts the rendezvous at e.Addr, or at a port that the kernel chooses, and
// publishes it.
func (e *Env) hostByStore(ctx context.Context, wait time.Duration, oneHost bool) (c *Conn, s *Server, err error) {
	var card card
	if e.Secret == nil {
		card.secret = make([]byte, SecretSize)
		rand.Read(card.secret)
		e.Secret = card.secret
	}
	switch {
	case e.Size == 1:
		return host(ctx, *e, wait, nil)
	case e.Addr != "":
		card.addrs = []string{e.Addr}
		c, s, err = e.host(ctx, wait, newDialer(e.Addr, e.Secret, e.joining(wait)))
	default:
		var l net.Listener
		if l, card.addrs, err = openAnywhere(ctx, oneHost); err == nil {
			e.Addr = strings.Join(card.addrs, ",")
			c, s, err = host(ctx, *e, wait, []net.Listener{l})
		}
	}
	if err != nil {
		return nil, nil, e.failByStore(ctx, err)
	}
	if err := e.Store.publish(ctx, e, card.text()); err != nil {
		c.conn.Close()
		return nil, nil, errors.Join(err, s.Close())
	}
	return c, s, nil
}

// failByStore tells the other ranks why rank 0 does not host the rendezvous, and returns the
// error of rank 0. Without it they would wait until the start timeout.
func (e *Env) failByStore(ctx context.Context, cause error) error {
	if e.Store.publish(ctx, e, failedCard(cause)) != nil {
		return cause // it says more than an error of the store
	}
	return errors.Join(cause, e.Manager.Finalize(ctx))
}

// A card says how to join a job.
type card struct {
	secret []byte   // nil: ranks have it already
	addrs  []string // host:port, each of them rank 0's
}

// maxCard bounds the text of a card: process managers take no longer value.
const maxCard = 1024

// cardMark begins a card, with its version.
const cardMark = "gopgas1"

// text returns the card without blanks and semicolons, which process managers do not take.
// It leaves out addresses for which there is no room.
func (c card) text() string {
	text := cardMark + "," + hex.EncodeToString(c.secret)
	for _, a := range c.addrs {
		if len(text)+1+len(a) <= maxCard {
			text += "," + a
		}
	}
	return text
}

// failedMark begins the card of a rank 0 that does not host the rendezvous. Its reason follows.
const failedMark = cardMark + "-failed,"

// maxFailure bounds the reason on a failed card. Each byte of it may take three.
const maxFailure = (maxCard - len(failedMark)) / 3

// failedCard returns the card by which rank 0 tells that it cannot host the rendezvous.
func failedCard(cause error) string {
	reason := cause.Error()
	return failedMark + url.QueryEscape(reason[:min(len(reason), maxFailure)])
}

// errCard: a store has something else than a card.
var errCard = errors.New("the process manager returned no address of this version of gopgas for rank 0: let all ranks run the same program")

// parseCard decodes a card of rank 0: addresses and, unless all ranks have it already, the secret.
// A card may also hold the reason why rank 0 cannot host, which is a HostError.
func parseCard(text string) (c card, err error) {
	if reason, failed := strings.CutPrefix(text, failedMark); failed && len(text) <= maxCard {
		if reason, err = url.QueryUnescape(reason); err != nil {
			return c, errCard
		}
		return c, &HostError{strings.ToValidUTF8(reason, "?")}
	}
	fields := strings.Split(text, ",")
	if len(text) > maxCard || len(fields) < 3 || fields[0] != cardMark {
		return c, errCard
	}
	if fields[1] != "" {
		if c.secret, err = hex.DecodeString(fields[1]); err != nil || len(c.secret) != SecretSize {
			return c, errCard
		}
	}
	c.addrs = fields[2:]
	for _, a := range c.addrs {
		if _, _, err := split(a); err != nil {
			return c, fmt.Errorf("%w (%w)", errCard, err)
		}
	}
	return c, nil
}

// literal returns the addresses of a card that has no names, those first that this host
// most likely reaches. With a name it returns nil.
func (c card) literal() (list []netip.AddrPort) {
	for _, text := range c.addrs {
		a, err := netip.ParseAddrPort(text)
		if err != nil {
			return nil
		}
		list = append(list, a)
	}
	near := prefixes()
	slices.SortStableFunc(list, func(a, b netip.AddrPort) int { return distance(near, a.Addr()) - distance(near, b.Addr()) })
	return list
}

// distance ranks an address by the interfaces of this host. An address of this host's own is
// last: where it is rank 0's too, only a bridge within each host has it, or all addresses are
// this host's.
func distance(near []netip.Prefix, a netip.Addr) int {
	for _, p := range near {
		if p.Addr() == a {
			return 2
		}
	}
	for _, p := range near {
		if p.Contains(a) {
			return 0
		}
	}
	return 1
}
