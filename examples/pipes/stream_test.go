package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/runtime"
)

// TestRecordsArriveUnchanged sends words of lengths around a block's from all ranks
// to rank 0, which adds them up.
func TestRecordsArriveUnchanged(t *testing.T) {
	sent := counts{"": 1, "one": math.MaxUint32}
	for _, n := range []int{1, 127, 128, blockSize - 2*binary.MaxVarintLen64, blockSize, 3 * blockSize} {
		sent[strings.Repeat("w", n)] = uint64(n)
	}
	everywhere(t, func(t *testing.T, n int, opts []runtime.Option) {
		require.NoError(t, local(n, func(ctx context.Context, job *runtime.Job) error {
			got, err := gather(ctx, job.World(), sent)
			if err != nil || job.World().Rank() != 0 {
				return err
			}
			for word, k := range sent {
				if got[word] != uint64(n)*k {
					err = errors.Join(err, fmt.Errorf("%d bytes: %d, want %d of each rank", len(word), got[word], k))
				}
			}
			if len(got) != len(sent) {
				err = errors.Join(err, fmt.Errorf("%d words", len(got)))
			}
			return err
		}, opts...))
	})
}

// TestBlockWithoutRecordsReturnsAnError cuts a block everywhere and lets lengths lie.
func TestBlockWithoutRecordsReturnsAnError(t *testing.T) {
	block := append(binary.AppendUvarint(nil, 3), 4, 'w', 'o', 'r', 'd')
	whole := counts{}
	require.NoError(t, whole.addAll(append(block, 0, 'x', 'y')))
	require.Equal(t, counts{"word": 3}, whole)
	for n := 1; n < len(block); n++ {
		require.ErrorIs(t, counts{}.addAll(block[:n]), errRecord, "%d bytes", n)
	}
	for _, wrong := range [][]byte{
		append([]byte{1}, binary.AppendUvarint(nil, math.MaxUint64)...),
		[]byte(strings.Repeat("\xff", 20)),
		[]byte("\x80\x00"),
	} {
		require.ErrorIs(t, counts{}.addAll(wrong), errRecord)
	}
}

// TestWrongBlockEndsTheMerge: the writer learns that its reader has closed.
func TestWrongBlockEndsTheMerge(t *testing.T) {
	err := local(1, func(ctx context.Context, job *runtime.Job) error {
		in, err := openStreams(ctx, job.World(), "wrong")
		if err != nil {
			return err
		}
		s, err := openStream(ctx, job.World(), 0, "wrong")
		if err != nil {
			return err
		}
		var both errgroup.Group
		both.Go(func() error { return counts{}.merge(ctx, in) })
		both.Go(func() error {
			defer s.close(ctx) //nolint:errcheck // the reader is gone
			return s.w.Send(ctx, []byte{1})
		})
		return both.Wait()
	}, runtime.WithProvider("loop"))
	require.ErrorIs(t, err, errRecord)
}

func TestEveryRankOwnsWords(t *testing.T) {
	seen := map[int]bool{}
	for i := range 100 {
		o := owner(fmt.Sprint(i), 8)
		require.Equal(t, o, owner(fmt.Sprint(i), 8))
		seen[o] = true
	}
	require.Len(t, seen, 8)
}
