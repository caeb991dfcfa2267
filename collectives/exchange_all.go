package collectives

import (
	"context"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// ExchangeAll sends to all, and then takes what comes from each: the pipes have room for
// short messages, so that nobody waits but for what comes. Long ones are exchanged with
// one member after the other, since those on their way should be few enough for caches.
// Who does so need not be everyone: to each member it is the same in what order messages
// go between others.
func (p *pipes) ExchangeAll(ctx context.Context, all message.All) error {
	n, rank := all.Size(), all.Rank()
	short := true
	for i := range n {
		longest := max(len(all.Out(i)), len(all.In(i)))
		if i == rank || longest == 0 && !p.telling {
			continue
		}
		if err := p.open(ctx, all.Member(i)); err != nil { // those who send to this one wait for it
			return err
		}
		short = short && p.cut(longest) <= lead
	}
	if !short {
		return message.ExchangeInTurns(ctx, p, &all)
	}
	for k := 1; k < n; k++ {
		to := (rank + k) % n
		if err := p.Send(ctx, all.Member(to), all.Out(to)); err != nil {
			return err
		}
	}
	for k := 1; k < n; k++ {
		from := (rank + n - k) % n
		if err := p.Recv(ctx, all.Member(from), all.In(from)); err != nil {
			return err
		}
	}
	return nil
}
