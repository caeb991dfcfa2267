package bootstrap

import (
	"context"
	"errors"
	"time"
)

// Enter joins the job of e, and completes e. Without a launcher, rank 0 hosts the rendezvous. Then Enter
// returns the server, too. The caller drains and closes it. wait bounds the start of the job, from the
// first join on; a rank that dials for so long gets a *MissingError. With wait 0 the start has no bound,
// and a rank dials for some seconds.
func (e *Env) Enter(ctx context.Context, wait time.Duration) (*Conn, *Server, error) {
	limit := wait
	if limit == 0 {
		limit = dialTimeout
	}
	bounded, cancel := bound(ctx, limit)
	defer cancel()
	c, s, err := e.enter(bounded, wait)
	var dial *DialError
	var address *AddressError
	switch {
	case !e.Hosted || err == nil || ctx.Err() != nil || errors.As(err, &address):
	case errors.As(err, &dial):
		return nil, nil, &MissingError{Ranks: []int{0}, Wait: wait, Cause: dial.Last}
	case bounded.Err() != nil: // in the store, which does not know the ranks that are late
		return nil, nil, &MissingError{Wait: wait}
	}
	return c, s, err
}

func (e *Env) joining(wait time.Duration) Joining {
	return Joining{Rank: e.Rank, Size: e.Size, Wait: wait, TLS: e.TLS}
}

// enter joins in the way that the environment names: by a store, as the rank that hosts the
// rendezvous, as one that may host it, or as its client. The Server is nil unless this process
// hosts it.
func (e *Env) enter(ctx context.Context, wait time.Duration) (*Conn, *Server, error) {
	d := newDialer(e.Addr, e.Secret, e.joining(wait))
	d.patient = e.Patient
	switch {
	case e.Store != nil:
		return e.enterByStore(ctx, wait)
	case e.Hosted && e.Rank == 0:
		return e.host(ctx, wait, d)
	case e.Hosted && e.Rank == AnyRank:
		return e.race(ctx, wait, d)
	}
	c, err := d.join(ctx)
	return c, nil, err
}

// host hosts the rendezvous as soon as the name of its address is known.
func (e *Env) host(ctx context.Context, wait time.Duration, d *dialer) (c *Conn, s *Server, err error) {
	err = d.repeat(ctx, func() bool {
		c, s, d.last = e.hostNow(ctx, wait)
		return c != nil
	})
	return c, s, err
}

// race hosts the rendezvous if this process is the first one that can listen at the
// address; else it joins the process that is.
func (e *Env) race(ctx context.Context, wait time.Duration, d *dialer) (c *Conn, s *Server, err error) {
	err = d.repeat(ctx, func() bool {
		var busy *AddressError
		if c, s, d.last = e.hostNow(ctx, wait); errors.As(d.last, &busy) {
			c = d.try(ctx)
		}
		return c != nil
	})
	return c, s, err
}

// hostNow hosts the rendezvous if this process can listen at the address.
func (e *Env) hostNow(ctx context.Context, wait time.Duration) (*Conn, *Server, error) {
	listeners, err := openListeners(ctx, e.Addr)
	if err != nil {
		return nil, nil, err
	}
	return host(ctx, *e, wait, listeners)
}
