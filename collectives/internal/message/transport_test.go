package message_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/testwatch"
)

var (
	errLengths = errors.New("sender and receiver differ in length")
	errFolds   = errors.New("sender and receiver differ in whether the message is folded")
)

// packetSize is no multiple of most elements, so that packets cut elements.
const packetSize = 20

// A packet is a piece of a message.
type packet struct {
	n       int
	message int          // bytes of the whole message, in its first packet
	folded  bool         // the sender knows that it is folded
	stamp   message.Cost // when the message has arrived, on the sender's clock
	data    [packetSize]byte
}

// net is a team of members in memory. Between any two is a queue of a few
// packets, or of none: then each sender waits for its receiver.
type net struct {
	members []*member
	queues  [][]chan packet // from, to
	moved   atomic.Uint64   // packets, and messages: a watchdog's steps
}

func newNet(n, room int) *net {
	w := &net{queues: make([][]chan packet, n)}
	for from := range n {
		w.queues[from] = make([]chan packet, n)
		for to := range n {
			w.queues[from][to] = make(chan packet, room)
		}
		w.members = append(w.members, &member{net: w, rank: from, sent: make([]int, n)})
	}
	return w
}

// run calls f at every member and returns its errors. The first error ends the
// calls of all members.
func (w *net) run(f func(ctx context.Context, m *member) error) []error {
	ctx, cancel := testwatch.With(context.Background(), w.moved.Load)
	defer cancel()
	errs := make([]error, len(w.members))
	var all sync.WaitGroup
	for i, m := range w.members {
		all.Go(func() {
			if errs[i] = f(ctx, m); errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	return errs
}

// finish calls f at every member and requires that none fails.
func (w *net) finish(t require.TestingT, f func(ctx context.Context, m *member) error) {
	for rank, err := range w.run(f) {
		require.NoError(t, err, "member %d", rank)
	}
	for from := range w.queues {
		for to, queue := range w.queues[from] {
			require.Empty(t, queue, "no member took a message from %d to %d", from, to)
		}
	}
}

// cost returns the longest path of messages since the last call.
func (w *net) cost() (longest message.Cost) {
	for _, m := range w.members {
		longest = later(longest, m.clock)
		m.clock = message.Cost{}
	}
	return longest
}

// A member is the transport of one member. Its clock counts rounds and bytes as in
// a one-port machine: one message out and one in at the same time.
type member struct {
	net     *net
	rank    int
	clock   message.Cost
	calls   int
	fail    int   // the call that fails, from 1; 0: none
	expects []int // calls ahead of each Expect
	part    []byte
	sent    []int // bytes, by member
}

var errInjected = errors.New("the transport failed")

func (m *member) Rank() int { return m.rank }
func (m *member) Size() int { return len(m.net.members) }

func (m *member) Send(ctx context.Context, to int, src []byte) error {
	return m.move(ctx, to, src, false, m.rank, incoming{})
}

func (m *member) SendFold(ctx context.Context, to int, src []byte) error {
	return m.move(ctx, to, src, true, m.rank, incoming{})
}

func (m *member) Recv(ctx context.Context, from int, dst []byte) error {
	return m.move(ctx, m.rank, nil, false, from, incoming{dst: dst})
}

func (m *member) Fold(ctx context.Context, from int, f message.Folding) error {
	return m.move(ctx, m.rank, nil, false, from, incoming{dst: f.Dst, fold: &f})
}

func (m *member) Exchange(ctx context.Context, to int, src []byte, from int, dst []byte) error {
	return m.move(ctx, to, src, false, from, incoming{dst: dst})
}

func (m *member) Expect(context.Context, []int) error {
	m.expects = append(m.expects, m.calls)
	return nil
}

func (m *member) ExchangeAll(ctx context.Context, b message.Batch) error {
	return message.ExchangeInTurns(ctx, m, &b)
}

func (m *member) ExchangeFold(ctx context.Context, to int, src []byte, from int, f message.Folding) error {
	return m.move(ctx, to, src, true, from, incoming{dst: f.Dst, fold: &f})
}

// incoming is a message on its way in.
type incoming struct {
	dst  []byte
	fold *message.Folding // nil: copied
}

// move sends src and receives a message at the same time, packet by packet.
func (m *member) move(ctx context.Context, to int, src []byte, folded bool, from int, in incoming) error {
	m.calls++
	m.net.moved.Add(1)
	if m.calls == m.fail {
		return errInjected
	}
	if to == m.rank && len(src) > 0 || from == m.rank && len(in.dst) > 0 {
		return fmt.Errorf("member %d sends to itself", m.rank)
	}
	if len(src) == 0 && len(in.dst) == 0 {
		return nil
	}
	m.sent[to] += len(src)
	sent := later(m.clock, message.Cost{Rounds: m.clock.Rounds + 1, Bytes: m.clock.Bytes + len(src)})
	arrived, done := message.Cost{}, 0
	out, first := m.packet(src, folded, sent), true
	for len(src) > 0 || done < len(in.dst) {
		var send, recv chan packet
		if len(src) > 0 {
			send = m.net.queues[m.rank][to]
		}
		if done < len(in.dst) {
			recv = m.net.queues[from][m.rank]
		}
		select {
		case send <- out:
			src = src[out.n:]
			out = m.packet(src, folded, sent)
			out.message = 0
		case p := <-recv:
			m.net.moved.Add(1)
			if first && p.message != len(in.dst) || !first && p.message != 0 {
				return fmt.Errorf("%w: %d came from %d, %d wanted at %d", errLengths, p.message, from, len(in.dst), m.rank)
			}
			if p.folded != (in.fold != nil) {
				return fmt.Errorf("%w: from %d at %d", errFolds, from, m.rank)
			}
			first, arrived = false, p.stamp
			done = m.take(&in, done, p.data[:p.n])
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	taken := message.Cost{Rounds: m.clock.Rounds + 1, Bytes: m.clock.Bytes + len(in.dst)}
	m.clock = later(later(sent, taken), arrived)
	return nil
}

func (m *member) packet(src []byte, folded bool, stamp message.Cost) packet {
	p := packet{message: len(src), folded: folded, stamp: stamp}
	p.n = copy(p.data[:], src)
	return p
}

// take puts a piece in its place, whole elements at a time if it combines, and
// returns the number of bytes received so far.
func (m *member) take(in *incoming, done int, piece []byte) int {
	if in.fold == nil {
		return done + copy(in.dst[done:], piece)
	}
	m.part = append(m.part, piece...)
	elem := in.fold.Elem
	whole := len(m.part) / elem * elem
	in.fold.Take(done-done%elem, m.part[:whole])
	m.part = m.part[:copy(m.part, m.part[whole:])]
	return done + len(piece)
}

func later(x, y message.Cost) message.Cost {
	return message.Cost{Rounds: max(x.Rounds, y.Rounds), Bytes: max(x.Bytes, y.Bytes)}
}

func TestNetFindsMembersThatAllSendFirst(t *testing.T) {
	t.Parallel()
	w := newNet(2, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	errs := w.run(func(_ context.Context, m *member) error {
		if err := m.Send(ctx, 1-m.rank, make([]byte, 100)); err != nil {
			return err
		}
		return m.Recv(ctx, 1-m.rank, make([]byte, 100))
	})
	for _, err := range errs {
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

func TestNetFindsLengthsThatDiffer(t *testing.T) {
	t.Parallel()
	errs := newNet(2, 1).run(func(ctx context.Context, m *member) error {
		if m.rank == 0 {
			return m.Send(ctx, 1, make([]byte, 8))
		}
		return m.Recv(ctx, 0, make([]byte, 16))
	})
	require.ErrorIs(t, errs[1], errLengths)
}
