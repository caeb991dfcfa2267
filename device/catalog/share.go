package catalog

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// A shareCard tells ranks where the sender listens, or that a rank failed.
type shareCard struct {
	Address string
	Ticket  []byte // which the sender demands of each receiver
	Err     string
}

// Share hands memory of rank from to all ranks of t on its host. Each gets a descriptor of it, by a Unix socket, and maps it. m
// counts at rank from only, which gets m itself. Ranks of other hosts get nil. The memory is mapped at each rank until its own
// Close; all have all of it, and agree on ranges by [device.Memory.Take].
//
// If a rank cannot send or map it, the call fails at all ranks, and none keeps a mapping. A rank that dies ends
// the call by runtime.ErrRankDead. Kind: collective.
func Share(ctx context.Context, t *runtime.Team, from int, m *device.Memory) (*device.Memory, error) {
	var mine shareCard
	s, err := newSender(t, from, m)
	if err != nil {
		mine.Err = err.Error()
	} else if s != nil {
		mine.Address, mine.Ticket = s.listener.Addr().String(), s.ticket
		defer s.serve(ctx)()
	}
	cards, err := swapCards(ctx, t, mine)
	if err != nil {
		return nil, fail("Share", err)
	}
	got, mine := m, shareCard{}
	if hosts := team.Of(t).Hosts; t.Rank() != from {
		if got = nil; hosts[t.Rank()] == hosts[from] {
			got, err = receive(ctx, &cards[from])
		}
	}
	if err != nil {
		mine.Err = err.Error()
	}
	_, e := swapCards(ctx, t, mine)
	if errors.Is(e, ErrOffer) { // the sender may have died behind its second card
		_, gone := t.Exchange(ctx, nil)
		e = errors.Join(e, gone)
	}
	if e != nil || err != nil {
		if got != nil && t.Rank() != from {
			e = errors.Join(e, got.Close())
		}
		return nil, fail("Share", errors.Join(err, e))
	}
	return got, nil
}

// swapCards returns the cards of all ranks, or an error if one has an error.
func swapCards(ctx context.Context, t *runtime.Team, mine shareCard) ([]shareCard, error) {
	b, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	all, err := t.Exchange(ctx, b)
	if err != nil {
		return nil, err
	}
	cards := make([]shareCard, len(all))
	for r, b := range all {
		if err := json.Unmarshal(b, &cards[r]); err != nil {
			return nil, fmt.Errorf("card of rank %d: %w", r, err)
		}
		if cards[r].Err != "" {
			return nil, fmt.Errorf("rank %d: %w: %s", r, ErrOffer, cards[r].Err)
		}
	}
	return cards, nil
}

// A sender hands a descriptor to each process that has the ticket.
type sender struct {
	memory   *device.Memory
	listener *net.UnixListener
	ticket   []byte
}

// newSender listens at rank from, at an address that the system chooses. It returns nil at other ranks.
func newSender(t *runtime.Team, from int, m *device.Memory) (*sender, error) {
	switch {
	case from < 0 || from >= t.Size():
		return nil, fmt.Errorf("rank %d of %d shares no memory", from, t.Size())
	case t.Rank() != from:
		return nil, nil
	case m == nil:
		return nil, errors.New("no memory to share")
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix"})
	if err != nil {
		return nil, err
	}
	return &sender{m, l, []byte(rand.Text())}, nil
}

// serve sends until the returned function is called, which waits for all that serve has begun.
func (s *sender) serve(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := s.listener.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil { // else descriptors are short for a moment, and the receiver waits
				all.Go(func() { s.send(ctx, conn) })
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(retryAccept):
			}
		}
	})
	return func() {
		cancel()
		shut(s.listener)
		all.Wait()
	}
}

// retryAccept is the time after which a sender without descriptors accepts again.
const retryAccept = 20 * time.Millisecond

// send serves one receiver. A receiver that gets no descriptor reports it.
func (s *sender) send(ctx context.Context, conn *net.UnixConn) {
	defer shut(conn)
	defer context.AfterFunc(ctx, func() { shut(conn) })()
	ticket := make([]byte, len(s.ticket))
	if _, err := io.ReadFull(conn, ticket); err == nil && bytes.Equal(ticket, s.ticket) {
		_ = s.memory.Send(ctx, conn)
	}
}

// shut closes a socket that is of no more use, whatever becomes of it.
func shut(c io.Closer) { _ = c.Close() }

// receive gets the memory from the rank of a card.
func receive(ctx context.Context, c *shareCard) (*device.Memory, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: c.Address, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("%w: %w (ranks of one host share a network namespace)", device.ErrNoDescriptor, err)
	}
	defer shut(conn)
	if _, err := conn.Write(c.Ticket); err != nil {
		return nil, fmt.Errorf("%w: %w", device.ErrNoDescriptor, err)
	}
	return device.Receive(ctx, conn)
}
