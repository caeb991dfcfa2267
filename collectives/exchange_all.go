package collectives

import (
	"context"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// ExchangeAll has all messages on their way at the same time: each connection is given
// what it takes, and this member waits only when none takes more. What comes meanwhile
// needs no help, but for the first blocks, which the pipes have room for.
//
// Long messages to members that have no landings fill the pipes. Who has such a one
// takes turns with all: in what order messages go between others is the same to each.
func (p *pipes) ExchangeAll(ctx context.Context, all message.All) error {
	fits, err := p.fits(ctx, &all)
	if err != nil {
		return err
	}
	if !fits {
		return message.ExchangeInTurns(ctx, p, &all)
	}
	n, rank := all.Size(), all.Rank()
	outs, ins := p.outs[:n], p.ins[:n]
	clear(outs)
	clear(ins)
	defer p.shutAll(ins)
	for k := 1; k < n; k++ {
		i := (rank + k) % n
		if err := p.leaving(ctx, &outs[i], all.Member(i), len(all.Out(i)), false); err != nil {
			return err
		}
	}
	for k := 1; k < n; k++ {
		i := (rank + k) % n
		if err := p.coming(ctx, &ins[i], all.Member(i), &sink{dst: all.In(i)}); err != nil {
			return err
		}
	}
	if err := p.putAll(ctx, &all, outs); err != nil {
		return err
	}
	return p.getAll(ctx, &all, ins)
}

// fits tells whether no message is longer than what a pipe takes of it.
func (p *pipes) fits(ctx context.Context, all *message.All) (bool, error) {
	for i := range all.Size() {
		if i == all.Rank() || p.cut(max(len(all.Out(i)), len(all.In(i)))) < longFrom {
			continue
		}
		if err := p.open(ctx, all.Member(i)); err != nil || !p.partners[all.Member(i)].lands {
			return false, err
		}
	}
	return true, nil
}

func (p *pipes) shutAll(ins []course) {
	for i := range ins {
		p.shut(&ins[i])
	}
}

// putAll sends what goes out, a block to each in turn.
func (p *pipes) putAll(ctx context.Context, all *message.All, outs []course) error {
	n, rank := all.Size(), all.Rank()
	for left := true; left; {
		left = false
		moved := false
		for k := 1; k < n; k++ {
			i := (rank + k) % n
			c := &outs[i]
			if c.done < c.blocks && p.mayGo(c) {
				if err := p.put(ctx, c, all.Out(i)); err != nil {
					return err
				}
				moved = true
			}
			left = left || c.done < c.blocks
		}
		if left && !moved {
			if err := p.awaitWay(ctx, outs); err != nil {
				return err
			}
		}
	}
	return nil
}

// getAll takes what comes.
func (p *pipes) getAll(ctx context.Context, all *message.All, ins []course) error {
	for i := range ins {
		c, into := &ins[i], sink{dst: all.In(i)}
		for c.done < c.blocks {
			if err := p.get(ctx, c, &into); err != nil {
				return err
			}
		}
	}
	return nil
}
