package channel

import (
	"context"
	"strconv"
	"testing"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
)

func TestMain(m *testing.M) { testjob.Main(m, nil) }

var key = Key{7, 0xabc}

// endOf makes this rank's endpoint of the channels with a peer, which may be this rank.
func endOf(ctx context.Context, r *testjob.Rank, peer, ring int) *End {
	t := team.Of(r.World)
	block, err := t.Arena().Alloc(Size(ring))
	r.NoError(err)
	name := func(writer int) string { return "channel " + strconv.Itoa(ring) + "/" + strconv.Itoa(writer) }
	_, err = t.Register(ctx, name(peer), block.Memory)
	r.NoError(err)
	there, err := t.Peer(ctx, t.Members[peer])
	r.NoError(err)
	return New(Config{Memory: block.Bytes, Ring: ring, Lands: there.Lands(), Await: t.Await, NewLanding: t.NewLanding,
		Reach: func(ctx context.Context) (*fabric.Remote, error) {
			return t.AwaitRegion(ctx, t.Members[peer], name(r.Me))
		}})
}

// message returns message k of a stream: its description and its bytes.
func message(e *End, k, bytes int, lands bool) (Message, []byte) {
	mem := make([]byte, bytes)
	for i := range mem {
		mem[i] = byte(k*31 + i*7 + i>>8)
	}
	return Message{Key: Key{uint64(k), 0xabc}, Bytes: bytes, Piece: MostPiece(e.Ring), Lands: lands && e.Lands(bytes), Private: k%2 == 0}, mem
}

// step makes the next step of an incoming message.
func step(ctx context.Context, e *End, m *Message, dst []byte) error {
	at, piece, err := e.Next(ctx, m)
	if err != nil {
		return err
	}
	copy(dst[at:], piece)
	return e.Free(ctx, m)
}

// exchange sends a message and receives another, as members do.
func exchange(ctx context.Context, e *End, out *Message, src []byte, in *Message, dst []byte) error {
	e.BeginSend(out)
	if err := e.BeginReceive(ctx, in, dst); err != nil {
		return err
	}
	if in.Lands {
		defer e.Shut()
	}
	for out.More() || in.More() {
		for out.More() && (!in.More() || out.Done() < in.Done()+Lead) {
			if err := e.Send(ctx, out, src); err != nil {
				return err
			}
		}
		if in.More() {
			if err := step(ctx, e, in, dst); err != nil {
				return err
			}
		}
	}
	return out.Wait(ctx)
}
