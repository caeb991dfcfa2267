package fabric_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/faulty"
)

// Who cannot wait learns whether the flag is on its way: data that a post can copy
// is, whatever the switch point, and larger data is not.
func TestAWriteFlagThatMustNotWaitIsPostedWholeOrNotAtAll(t *testing.T) {
	const size = 512 << 10
	for name, plan := range map[string]faulty.Plan{
		"inline": {HideMapper: true},
		"slow":   {HideMapper: true, DelayStarts: 1},
		"staged": {HideMapper: true, NeedLocalKeys: true, MaxInline: 64, HideExtendedAtomics: true, HideCanceler: true},
	} {
		t.Run(name, func(t *testing.T) {
			remote, mem := pair(t, size, 1, plan)
			over, cancel := context.WithCancel(watched(t))
			cancel()
			src := make([]byte, 30_000)
			src[len(src)-1] = 7
			require.NoError(t, remote.WriteFlag(over, 8, src, fabric.Flag{Value: 3}))
			clear(src) // it is free
			require.NoError(t, remote.Peer.Flush(watched(t)))
			require.EqualValues(t, 3, mem[0])
			require.EqualValues(t, 7, mem[8+len(src)-1])

			err := remote.WriteFlag(over, 8, make([]byte, size/2), fabric.Flag{Value: 4})
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, remote.Peer.Flush(watched(t)))
			require.EqualValues(t, 3, mem[0])
			require.EqualValues(t, 7, mem[8+len(src)-1])
		})
	}
}

// Who gives up in the middle knows as much: the flag is there, with all of its
// data, or it never comes.
func TestAWriteFlagThatGivesUpIsPostedWholeOrNotAtAll(t *testing.T) {
	const size = 256 << 10
	for name, plan := range map[string]faulty.Plan{
		"slow":        {DelayStarts: 0.5, DelayCompletions: 0.5},
		"few atomics": {DelayStarts: 0.5, DelayCompletions: 0.5, HideExtendedAtomics: true},
		"crowded":     {DelayStarts: 0.5, DelayCompletions: 0.5, QueueFull: 0.3, PartialPosts: 0.3},
		"held":        {DelayStarts: 0.5, DelayCompletions: 0.5, HideCanceler: true},
	} {
		t.Run(name, func(t *testing.T) {
			plan.MaxDelay, plan.MaxPolls = time.Millisecond, 1000
			remote, mem := pair(t, 64+size, 1, plan)
			src, last := make([]byte, size), uint64(0)
			gaveUp := 0
			for round := range uint64(200) {
				for i := range src {
					src[i] = byte(round)
				}
				ctx, cancel := context.WithTimeout(watched(t), time.Duration(round%20)*10*time.Microsecond)
				err := remote.WriteFlag(ctx, 64, src, fabric.Flag{Value: round + 1})
				cancel()
				clear(src)
				require.NoError(t, remote.Peer.Flush(watched(t)))
				if err == nil {
					last = round + 1
					require.Equal(t, bytes.Repeat([]byte{byte(round)}, size), mem[64:])
				} else {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					gaveUp++
				}
				require.Equal(t, last, binary.NativeEndian.Uint64(mem))
			}
			require.NotZero(t, gaveUp)
			require.NotZero(t, last)
		})
	}
}

// Who sees the last word sees what was written behind it and what before, and the sender has
// its memory back at once.
func TestTheLastWordTellsOfWhatLiesElsewhere(t *testing.T) {
	for name, plan := range map[string]faulty.Plan{
		"mapped":  {},
		"inline":  {HideMapper: true},
		"slow":    {HideMapper: true, DelayStarts: 0.5, DelayCompletions: 0.5, MaxPolls: 100},
		"staged":  {HideMapper: true, NeedLocalKeys: true, MaxInline: 64, HideExtendedAtomics: true},
		"crowded": {HideMapper: true, QueueFull: 0.3, PartialPosts: 0.3, MaxPolls: 100},
	} {
		for _, size := range []int{8, 1000, 16 << 10, 100_000} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				const head = 128
				remote, mem := pair(t, head+size, 1, plan)
				body, slot := make([]byte, size), make([]byte, head)
				last := atomics.Word64(mem[head-8:])
				for round := range uint64(100) {
					for i := range body {
						body[i] = byte(round + 1)
					}
					slot[0] = byte(round + 1)
					binary.NativeEndian.PutUint64(slot[head-8:], round+1)
					require.NoError(t, remote.WriteWholeBehind(watched(t), head, body, 0, slot))
					clear(body)
					clear(slot)
					for ctx := watched(t); last.Load() != round+1; runtime.Gosched() {
						require.NoError(t, ctx.Err())
					}
					require.Equal(t, byte(round+1), mem[0])
					require.Equal(t, bytes.Repeat([]byte{byte(round + 1)}, size), mem[head:])
				}
			})
		}
	}
}
