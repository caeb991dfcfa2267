package active_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// frame is a message as it lies in a block, and may lie about its length.
func frame(kind byte, length uint32, id uint64, payload int) []byte {
	b := make([]byte, 24+payload)
	b[0] = kind
	binary.LittleEndian.PutUint32(b[4:], length)
	binary.LittleEndian.PutUint64(b[16:], id)
	return b
}

// hostileBlocks are none of messages.
var hostileBlocks = map[string][]byte{
	"nothing":             {},
	"part of a header":    make([]byte, 23),
	"kind 0":              frame(0, 0, 1, 0),
	"kind 9":              frame(9, 0, 1, 0),
	"longer than it is":   frame(1, 17, 1, 16),
	"far longer":          frame(1, 1<<32-1, 1, 16),
	"a length that wraps": frame(1, 1<<32-8, 1, 0),
	"good, then bad":      append(frame(1, 8, 0, 8), 1, 2, 3),
	"a reply of no call":  frame(2, 8, 1<<63, 8),
	"a failure":           frame(3, 8, 77, 8),
}

// A rank that writes any bytes into the pipes of requests and replies stops no other
// rank's calls. The memory of its blocks is freed.
func TestEndpointOutlivesCorruptFrames(t *testing.T) {
	for name, block := range hostileBlocks {
		t.Run(name, func(t *testing.T) {
			testjob.Config{Provider: "loop", Queued: true, Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
				opts := []active.Option{active.WithBatch(64), active.WithHeap(256), active.WithWidth(2)}
				a, err := active.Open(ctx, r.World, active.Handlers{"echo": pipetest.EchoFrom}, opts...)
				r.NoError(err)
				_, err = a.Call(ctx, 1-r.Me, "echo", nil)
				r.NoError(err)
				r.NoError(r.World.Barrier(ctx))
				if r.Me == 1 {
					for range 20 { // more than there is room for
						r.NoError(a.Inject(ctx, 0, block))
					}
				}
				r.NoError(r.World.Barrier(ctx))
				if r.Me == 0 { // to itself; rank 1 may count as lost
					reply, err := a.Call(ctx, 0, "echo", []byte("well"))
					r.NoError(err)
					r.Equal("well", string(reply[:4]))
				}
				r.NoError(r.World.Barrier(ctx))
				r.NoError(a.Close(ctx))
			})
		})
	}
}
