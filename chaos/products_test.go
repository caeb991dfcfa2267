package chaos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/fan"
)

// fan sends messages from all members of the team to all members, each of which reads by one
// FanIn.
func (p *player) fan(ctx context.Context) {
	me, n := p.team.Rank(), p.team.Size()
	others := slices.DeleteFunc(ranks(n), func(r int) bool { return r == me })
	if n == 1 {
		return
	}
	opts := []rpipe.Option{rpipe.WithName("fan"), rpipe.WithHeap(8 << 10), rpipe.WithWidth(1 + p.shared.IntN(8))}
	in, err := fan.OpenIn[byte](ctx, p.team, others, opts...)
	p.NoError(err)
	sent, errs := make([][]int64, n), make([]error, n+1)
	received := make([][]int64, len(others))
	var ends sync.WaitGroup
	for _, r := range others {
		w, err := rpipe.OpenWriter[byte](ctx, p.team, r, opts...)
		p.NoError(err)
		rng := p.rng(3000 + p.Me*100 + r)
		ends.Go(func() { sent[r], errs[r] = p.send(ctx, rng, w, messages/3, 2_000) })
	}
	ends.Go(func() { errs[n] = receiveAll(ctx, p.rng(4000+p.Me), in, received) })
	ends.Wait()
	p.NoError(errors.Join(errs...), "%v: rank %d: FanIn", p.trial, p.Me)
	p.NoError(in.Close(ctx))
	all := swap(ctx, p, sent)
	for i, from := range others {
		p.holds(received[i], all[from][me], from)
	}
}

func ranks(n int) (all []int) {
	for r := range n {
		all = append(all, r)
	}
	return all
}

// receiveAll adds the numbers that arrive to received, by the sender's position.
func receiveAll(ctx context.Context, rng *rand.Rand, in *fan.In[byte], received [][]int64) error {
	return drain(ctx, rng, func(ctx context.Context) error {
		b, from, err := in.Read(ctx)
		if err != nil {
			return err
		}
		if received[from], err = appendMessage(received[from], b.Mem()); err != nil {
			return fmt.Errorf("from position %d: %w", from, err)
		}
		return in.Free(b)
	})
}

// drain calls read, each time with a fuse, until read returns the end.
func drain(ctx context.Context, rng *rand.Rand, read func(context.Context) error) error {
	for {
		f := drawFuse(ctx, rng)
		err := read(f)
		f.stop()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !f.excuses(err):
			return err
		}
	}
}

// appendMessage checks a message and appends its number to those that came before it.
func appendMessage(before []int64, m []byte) ([]int64, error) {
	number := int64(binary.LittleEndian.Uint64(m))
	if string(m) != string(message(number, len(m))) {
		return nil, fmt.Errorf("message %d is damaged", number)
	}
	if k := len(before); k > 0 && number <= before[k-1] {
		return nil, fmt.Errorf("message %d arrived behind message %d", number, before[k-1])
	}
	return append(before, number), nil
}

// holds checks that all messages in sent arrived.
func (p *player) holds(received, sent []int64, from int) {
	for _, number := range sent {
		_, found := slices.BinarySearch(received, number)
		p.True(found, "%v: rank %d: message %d of rank %d is missing", p.trial, p.Me, number, from)
	}
}

// convey pushes records to random ranks, and pulls the records for this rank.
func (p *player) convey(ctx context.Context) {
	c, err := conveyor.Open[int64](ctx, p.team, conveyor.WithName("conveyor"), conveyor.WithHeap(4<<10), conveyor.WithBatch(512))
	p.NoError(err)
	sent, received := make([][]int64, p.team.Size()), make([][]int64, p.team.Size())
	var pushErr, pullErr error
	var ends sync.WaitGroup
	pushRng, pullRng := p.rng(5000+p.Me), p.rng(6000+p.Me)
	ends.Go(func() { pushErr = push(ctx, pushRng, c, sent) })
	ends.Go(func() { pullErr = pull(ctx, pullRng, c, received) })
	ends.Wait()
	p.NoError(errors.Join(pushErr, pullErr), "%v: rank %d: Conveyor", p.trial, p.Me)
	p.NoError(c.Close(ctx))
	for from, theirs := range swap(ctx, p, sent) {
		p.True(slices.IsSorted(received[from]))
		p.holds(received[from], theirs[p.team.Rank()], from)
	}
}

func push(ctx context.Context, rng *rand.Rand, c *conveyor.Conveyor[int64], sent [][]int64) error {
	for number := range int64(400) {
		to, f := rng.IntN(len(sent)), drawFuse(ctx, rng)
		err := c.Push(f, to, number)
		if err == nil {
			sent[to] = append(sent[to], number)
		} else if !f.excuses(err) {
			return err
		}
		if number%50 == 0 {
			if err := c.Flush(f); err != nil && !f.excuses(err) {
				return err
			}
		}
		f.stop()
	}
	return c.Finish(ctx)
}

func pull(ctx context.Context, rng *rand.Rand, c *conveyor.Conveyor[int64], received [][]int64) error {
	return drain(ctx, rng, func(ctx context.Context) error {
		number, from, err := c.Pull(ctx)
		if err == nil {
			received[from] = append(received[from], number)
		}
		return err
	})
}

// callHandlers calls handlers of random ranks, which count their calls.
func (p *player) callHandlers(ctx context.Context) {
	var handled atomic.Int64
	a, err := active.Open(ctx, p.team, active.Handlers{"add": func(_ context.Context, from int, request []byte) ([]byte, error) {
		handled.Add(1)
		return append(request[:len(request):len(request)], byte(from)), nil
	}}, active.WithName("active"), active.WithHeap(8<<10))
	p.NoError(err)
	calls := make([]eventCount, p.team.Size())
	for range 40 {
		to, f, request := p.own.IntN(len(calls)), drawFuse(ctx, p.own), message(p.value(), 8+p.own.IntN(500))
		reply, err := a.Call(f, to, "add", request)
		e := p.judge("Call", f, err)
		f.stop()
		calls[to].count(e)
		if e == sure {
			p.Equal(append(request, byte(p.team.Rank())), reply, p.at("Call", to))
		}
	}
	all := swap(ctx, p, calls)
	p.NoError(a.Close(ctx), "%v: rank %d: Active.Close", p.trial, p.Me)
	var made eventCount
	for _, theirs := range all {
		made = made.plus(theirs[p.team.Rank()])
	}
	p.True(made.allows(handled.Load()), "%v: rank %d: %d requests were handled, of %+v", p.trial, p.Me, handled.Load(), made)
}
