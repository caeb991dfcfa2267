//go:build linux

package fabric_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/tcp"
)

// Under a context that has ended, Put posts data and flag if it can copy the data. The
// switch point does not matter. It posts neither of larger data.
func TestPutUnderAnEndedContextPostsDataAndFlagOrNeither(t *testing.T) {
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
			require.NoError(t, remote.Put(over, told(8, src, fabric.Flag{Value: 3})))
			clear(src) // src is free
			require.NoError(t, remote.Peer.Flush(watched(t)))
			require.EqualValues(t, 3, mem[0])
			require.EqualValues(t, 7, mem[8+len(src)-1])

			err := remote.Put(over, told(8, make([]byte, size/2), fabric.Flag{Value: 4}))
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, remote.Peer.Flush(watched(t)))
			require.EqualValues(t, 3, mem[0])
			require.EqualValues(t, 7, mem[8+len(src)-1])

			slot := make([]byte, 128)
			slot[len(slot)-8], src[0] = 5, 6
			require.NoError(t, remote.Put(over, slotPut(src, slot)))
			require.NoError(t, remote.Peer.Flush(watched(t)))
			require.EqualValues(t, 5, mem[len(slot)-8])
			require.EqualValues(t, 6, mem[len(slot)])
			slot[len(slot)-8] = 9
			require.ErrorIs(t, remote.Put(over, slotPut(make([]byte, size/2), slot)), context.Canceled)
			require.NoError(t, remote.Peer.Flush(watched(t)))
			require.EqualValues(t, 5, mem[len(slot)-8])
		})
	}
}

// soon returns the time that a put has in a round. On a slow machine later rounds have more.
func soon(round uint64) time.Duration {
	return time.Duration(round%20*(1+round/200)) * 10 * time.Microsecond
}

// If the context ends in the middle of a put, its error says that the flag never comes.
// Without an error the flag arrives with all of the data.
func TestPutWhoseContextEndsPostsItsFlagOrReturnsAnError(t *testing.T) {
	const size = 256 << 10
	for name, plan := range map[string]faulty.Plan{
		"slow":        {DelayStarts: 0.5, DelayCompletions: 0.5},
		"few atomics": {DelayStarts: 0.5, DelayCompletions: 0.5, HideExtendedAtomics: true},
		"crowded":     {DelayStarts: 0.5, DelayCompletions: 0.5, QueueFull: 0.3, PartialPosts: 0.3},
		"held":        {DelayStarts: 0.5, DelayCompletions: 0.5, HideCanceler: true},
		"in pieces":   {DelayStarts: 0.5, DelayCompletions: 0.5, MaxPolls: 100},
	} {
		t.Run(name, func(t *testing.T) {
			plan.MaxDelay, plan.MaxPolls = time.Millisecond, 1000
			wire, small := loop.New(), func(info *driver.DeviceInfo) {
				if name == "in pieces" {
					info.MaxMessage = size/2 + 1
				}
			}
			r := newRigOver(t, 2, 1, func() driver.Provider { return faulty.New(&recorder{Provider: wire, change: small}, plan) })
			mem := r.region(t, 1, 64+size, "x")
			remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
			require.NoError(t, err)
			src, last := make([]byte, size), uint64(0)
			gaveUp, rounds := 0, uint64(testwatch.Rounds(200))
			for round := uint64(0); round < rounds || last == 0 && round < 100*rounds; round++ {
				for i := range src {
					src[i] = byte(round)
				}
				ctx, cancel := context.WithTimeout(watched(t), soon(round))
				err := remote.Put(ctx, told(64, src, fabric.Flag{Value: round + 1}))
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

// The last word tells the target of the part that it ends and of the one ahead. The sender
// may change both at once.
func TestLastWordArrivesBehindBothParts(t *testing.T) {
	for name, plan := range map[string]faulty.Plan{
		"mapped":  {},
		"queued":  {HideMapper: true},
		"slow":    {DelayStarts: 0.5, DelayCompletions: 0.5, MaxPolls: 100},
		"staged":  {HideMapper: true, NeedLocalKeys: true, MaxInline: 64, HideExtendedAtomics: true},
		"crowded": {QueueFull: 0.3, PartialPosts: 0.3, MaxPolls: 100},
	} {
		wire := loop.New()
		for over, open := range map[string]func() driver.Provider{
			"loop": func() driver.Provider { return faulty.New(wire, plan) },
			"tcp":  func() driver.Provider { return faulty.New(tcp.New(tcp.Config{}), plan) },
		} {
			for _, size := range []int{8, 1000, 16 << 10, 100_000} {
				t.Run(fmt.Sprint(name, over, size), func(t *testing.T) { writeBehind(t, newRigOver(t, 2, 0, open), size) })
			}
		}
	}
}

// slotPut describes a put of body and, behind it, a slot whose last word tells of both. The
// slot lies ahead of body at the target.
func slotPut(body, slot []byte) *fabric.Put {
	return &fabric.Put{Head: fabric.Part{At: len(slot), Mem: body, Path: fabric.Inline}, Body: fabric.Part{Mem: slot}, Tell: fabric.TellByLastWord}
}

// writeBehind writes round by round. It starts a round once the target has seen the one before.
func writeBehind(t *testing.T, r *rig, size int) {
	const head = 128
	mem := r.region(t, 1, head+size, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	body, slot := make([]byte, size), make([]byte, head)
	put := slotPut(body, slot)
	last := atomics.Word64(mem[head-8:])
	for round := range uint64(testwatch.Rounds(100)) {
		for i := range body {
			body[i] = byte(round + 1)
		}
		slot[0] = byte(round + 1)
		binary.NativeEndian.PutUint64(slot[head-8:], round+1)
		require.NoError(t, remote.Put(watched(t), put))
		clear(body)
		clear(slot)
		for ctx := watched(t); last.Load() != round+1; goruntime.Gosched() {
			require.NoError(t, ctx.Err())
			r.ranks[0].Progress()
		}
		require.Equal(t, byte(round+1), mem[0])
		require.Equal(t, bytes.Repeat([]byte{byte(round + 1)}, size), mem[head:])
	}
}

// If the context ends, the error says whether the last word was posted. It arrives behind all
// data then.
func TestLastWordOfACanceledPutArrivesBehindAllDataOrNever(t *testing.T) {
	const head, size = 128, 100_000
	for name, plan := range map[string]faulty.Plan{
		"slow":    {DelayStarts: 0.5, DelayCompletions: 0.5, MaxDelay: time.Millisecond, MaxPolls: 1000},
		"crowded": {QueueFull: 0.9, PartialPosts: 0.5, MaxDelay: time.Millisecond, MaxPolls: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			remote, mem := pair(t, head+size, 1, plan)
			body, slot := make([]byte, size), make([]byte, head)
			put := slotPut(body, slot)
			last, gaveUp, rounds := uint64(0), 0, uint64(testwatch.Rounds(200))
			for round := uint64(0); round < rounds || last == 0 && round < 100*rounds; round++ {
				for i := range body {
					body[i] = byte(round)
				}
				binary.NativeEndian.PutUint64(slot[head-8:], round+1)
				ctx, cancel := context.WithTimeout(watched(t), soon(round))
				err := remote.Put(ctx, put)
				cancel()
				clear(body)
				require.NoError(t, remote.Peer.Flush(watched(t)))
				if err == nil {
					last = round + 1
					require.Equal(t, bytes.Repeat([]byte{byte(round)}, size), mem[head:])
				} else {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					gaveUp++
				}
				require.Equal(t, last, binary.NativeEndian.Uint64(mem[head-8:]))
			}
			require.NotZero(t, last)
			if plan.QueueFull > 0 { // else there is nothing to wait for before the last word is posted
				require.NotZero(t, gaveUp)
			}
		})
	}
}
