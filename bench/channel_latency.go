//go:build linux

package main

import (
	"context"
	"strconv"

	"github.com/gopgas/gopgas/internal/channel"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
)

// channelRing is the length of a ring, as that of collective calls in a small team.
const channelRing = 1 << 20

// channelLatency plays ping-pong through a channel, as collective calls send a message that
// does not land. The receiver reads the message where it lies.
func channelLatency(ctx context.Context, h *harness, size int) (task, error) {
	if size > channel.MostPiece(channelRing) {
		return task{}, errSkip
	}
	p, free, err := h.channel(ctx, "latency", size)
	if err != nil || h.rank > target {
		return task{run: h.origin(nil), free: free}, err
	}
	return task{run: h.pingPong(p.send, p.receive), free: free}, nil
}

// channel makes a channel between rank 0 and the target. Kind: collective; further ranks
// get nil.
func (h *harness) channel(ctx context.Context, use string, size int) (p *channelPinger, free func(context.Context) error, err error) {
	if h.rank > target {
		return nil, h.world.Barrier, nil
	}
	t, peer := team.Of(h.world), target-h.rank
	block, err := t.Arena().Alloc(channel.Size(channelRing))
	if err != nil {
		return nil, nil, err
	}
	name := func(reader int) string { return use + " of " + strconv.Itoa(size) + " at " + strconv.Itoa(reader) }
	region, err := t.Register(ctx, name(h.rank), block.Memory)
	if err != nil {
		return nil, nil, err
	}
	p = &channelPinger{src: make([]byte, size), progress: func() { t.Progress() }}
	p.end = channel.New(channel.Config{Memory: block.Bytes, Ring: channelRing, Await: t.Await,
		Reach: func(ctx context.Context) (*fabric.Remote, error) {
			return t.AwaitRegion(ctx, t.Members[peer], name(peer))
		}})
	return p, func(ctx context.Context) error {
		if err := h.world.Barrier(ctx); err != nil { // the peer writes there no more
			return err
		}
		return t.GiveBack(region, block)
	}, nil
}

// A channelPinger sends and receives messages at one end of a channel.
type channelPinger struct {
	end      *channel.End
	src      []byte
	out, in  channel.Message
	sum      byte
	progress func()
}

func (p *channelPinger) message() channel.Message {
	return channel.Message{Bytes: len(p.src), Piece: channel.MostPiece(channelRing)}
}

// send sends one message to the peer. pingPong calls it.
func (p *channelPinger) send(ctx context.Context, _ int) error {
	rewrite(p.src)
	p.out = p.message()
	p.end.BeginSend(&p.out)
	return p.end.Send(ctx, &p.out, p.src)
}

// receive takes one message, which comes in one piece, and gives its memory back.
func (p *channelPinger) receive(ctx context.Context) error {
	p.in = p.message()
	if err := p.end.BeginReceive(ctx, &p.in, nil); err != nil {
		return err
	}
	_, piece, err := p.end.Next(ctx, &p.in)
	if err != nil {
		return err
	}
	p.sum += read(piece)
	return p.end.Free(ctx, &p.in)
}
