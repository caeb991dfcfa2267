package chaos

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/netpipe"
)

const (
	messages = 60
	longest  = 5_000
)

// pipes uses pipes of every kind.
func (p *player) pipes(ctx context.Context) {
	p.pipe(ctx)
	p.dial(ctx)
	p.fan(ctx)
	p.convey(ctx)
	p.callHandlers(ctx)
}

// pipe sends messages around the ring of the team's members, with fuses at both ends.
func (p *player) pipe(ctx context.Context) {
	me, n := p.team.Rank(), p.team.Size()
	left, right := (me+n-1)%n, (me+1)%n
	opts := []rpipe.Option{rpipe.WithHeap(16 << 10), rpipe.WithWidth(1 + p.shared.IntN(16))}
	if p.shared.IntN(3) == 0 {
		opts = append(opts, rpipe.WithPull())
	}
	w, err := rpipe.OpenWriter[byte](ctx, p.team, right, opts...)
	p.NoError(err)
	r, err := rpipe.OpenReader[byte](ctx, p.team, left, opts...)
	p.NoError(err)
	var sent, received []int64
	var sendErr, readErr error
	sendRng, readRng := p.rng(1000+p.Me), p.rng(2000+p.Me)
	var ends sync.WaitGroup
	ends.Go(func() { sent, sendErr = p.send(ctx, sendRng, w, messages, longest) })
	ends.Go(func() { received, readErr = p.receive(ctx, readRng, r) })
	ends.Wait()
	p.NoError(sendErr, "%v: rank %d: Send", p.trial, p.Me)
	p.NoError(readErr, "%v: rank %d: Read", p.trial, p.Me)
	p.NoError(r.Close(ctx))
	p.holds(received, swap(ctx, p, sent)[left], left)
}

// send returns the numbers of the messages that were sent for sure.
func (p *player) send(ctx context.Context, rng *rand.Rand, w *rpipe.Writer[byte], messages int64, longest int) (sent []int64, err error) {
	for number := range messages {
		f := drawFuse(ctx, rng)
		err := w.Send(f, message(number, 9+rng.IntN(longest)))
		f.stop()
		switch {
		case err == nil:
			sent = append(sent, number)
		case !f.excuses(err):
			return nil, err
		}
	}
	return sent, w.Close(ctx)
}

// receive returns the numbers of the messages that arrived.
func (p *player) receive(ctx context.Context, rng *rand.Rand, r *rpipe.Reader[byte]) (numbers []int64, err error) {
	err = drain(ctx, rng, func(ctx context.Context) error {
		b, err := r.Read(ctx)
		if err != nil {
			return err
		}
		if numbers, err = appendMessage(numbers, b.Mem()); err != nil {
			return err
		}
		return r.Free(b)
	})
	return numbers, err
}

// message returns a message of n bytes.
func message(number int64, n int) []byte {
	m := binary.LittleEndian.AppendUint64(make([]byte, 0, n), uint64(number))
	for len(m) < n {
		m = append(m, byte(number*31+int64(len(m))))
	}
	return m
}

// dial connects every rank to some listeners, with fuses at the first attempts.
func (p *player) dial(ctx context.Context) {
	l, err := netpipe.Listen(ctx, p.team)
	p.NoError(err)
	var served sync.WaitGroup
	served.Go(func() { serve(l, &served) })
	for range 2 {
		p.NoError(p.call(ctx, p.own.IntN(p.team.Size())), "%v: rank %d: Dial", p.trial, p.Me)
	}
	p.NoError(p.team.Barrier(ctx))
	p.NoError(l.Close())
	served.Wait()
}

// call dials a rank until it succeeds, and has it echo a message.
func (p *player) call(ctx context.Context, rank int) error {
	var c *netpipe.Conn
	for range 3 {
		f := drawFuse(ctx, p.own)
		conn, err := netpipe.Dial(f, p.team, rank)
		f.stop()
		if c = conn; err == nil {
			break
		}
		if !f.excuses(err) {
			return err
		}
	}
	if c == nil {
		var err error
		if c, err = netpipe.Dial(ctx, p.team, rank); err != nil {
			return err
		}
	}
	defer c.Close()
	question, answer := message(int64(p.Me), 100), make([]byte, 100)
	if _, err := c.Write(question); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	if string(answer) != string(question) {
		return errors.New("the echo differs")
	}
	return nil
}

// serve echoes on all connections until the listener closes.
func serve(l net.Listener, served *sync.WaitGroup) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		served.Go(func() {
			defer c.Close()
			_, _ = io.Copy(c, c) // a dialer that gave up ends the copy with an error
		})
	}
}
