package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

// Each rank sends blocks to the right with a signal in a word of another window. It answers to the
// left by a sum in a word of its data.
func TestSignalsInWordsOfAnyWindow(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		const n = 700
		data := allocate[int32](ctx, r, n)
		words := allocate[struct{ Turn, Sum uint64 }](ctx, r, 3)
		turn := partAs[uint64](r, words, 16, 1)
		sum := partAs[int64](r, words, 40, 1)
		buf := make([]int32, n)
		for round := range int32(20) {
			for i := range buf {
				buf[i] = round + int32(i)
			}
			signal := window.SignalAt[uint64]{Window: turn, Value: uint64(round) + 1}
			if round%2 == 0 {
				r.NoError(window.PutSignal(ctx, data, r.Right(), 0, buf, signal))
			} else {
				request, err := window.StartPutSignal(ctx, data, r.Right(), 0, buf, signal)
				r.NoError(err)
				r.NoError(request.Wait(ctx))
			}
			_, _, err := window.WaitUntil(ctx, turn, window.Elements[uint64]{At: []int{0}, Condition: window.AtLeast, Value: uint64(round) + 1})
			r.NoError(err)
			r.Equal(buf, data.Local())
			r.NoError(window.PutSignal(ctx, data, r.Left(), 0, nil, window.SignalAt[int64]{Window: sum, Value: -3, Add: true}))
			_, _, err = window.WaitUntil(ctx, sum, window.Elements[int64]{At: []int{0}, Condition: window.AtMost, Value: -3 * int64(round+1)})
			r.NoError(err)
		}
		r.NoError(r.World.Barrier(ctx))
		r.NoError(words.Free(ctx))
		r.ErrorIs(window.PutSignal(ctx, data, 0, 0, buf[:1], window.SignalAt[uint64]{Window: turn}), window.ErrFreed)
		r.NoError(data.Free(ctx))
	})
}

func TestWrongSignalsAreRefusedAheadOfTheData(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		data, words := allocate[int64](ctx, r, 2), allocate[int64](ctx, r, 2)
		half, err := r.World.Split(ctx, r.Me, 0)
		r.NoError(err)
		apart, err := window.Allocate[int64](ctx, half, 1)
		r.NoError(err)
		one := []int64{1}
		send := func(target, index int, s window.SignalAt[int64]) error {
			return window.PutSignal(ctx, data, target, index, one, s)
		}
		r.ErrorIs(send(r.Right(), 0, window.SignalAt[int64]{}), window.ErrTeam)
		r.ErrorIs(send(r.Right(), 0, window.SignalAt[int64]{Window: apart}), window.ErrTeam)
		r.ErrorIs(send(r.Right(), 0, window.SignalAt[int64]{Window: words, Index: 2}), window.ErrRange)
		r.ErrorIs(send(r.Right(), 0, window.SignalAt[int64]{Window: words, Index: -1}), window.ErrRange)
		r.ErrorIs(send(r.Right(), 2, window.SignalAt[int64]{Window: words, Value: 1}), window.ErrRange)
		r.ErrorIs(send(r.N, 0, window.SignalAt[int64]{Window: words, Value: 1}), window.ErrRange)
		r.NoError(send(window.Null, 0, window.SignalAt[int64]{Window: words, Value: 1}))
		q := newQueue(r)
		r.ErrorIs(send(r.Right(), 0, window.SignalAt[int64]{Window: through(r, words, q)}), window.ErrTeam)
		r.NoError(data.Fence(ctx))
		r.NoError(words.Fence(ctx))
		r.Equal([]int64{0, 0}, data.Local(), "no wrong call has stored an element")
		r.Equal([]int64{0, 0}, words.Local())
		r.NoError(r.World.Barrier(ctx))
		r.NoError(window.PutSignal(ctx, through(r, data, q), r.Right(), 0, one, window.SignalAt[int64]{Window: through(r, words, q), Value: 5}))
		_, _, err = window.WaitUntil(ctx, words, window.Elements[int64]{At: []int{0}, Value: 5})
		r.NoError(err)
		r.EqualValues(1, data.Local()[0])
		r.NoError(r.World.Barrier(ctx))
	})
}
