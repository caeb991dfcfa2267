package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/farheap"
	"github.com/gopgas/gopgas/runtime"
)

// jobs are the sizes that every test runs at.
var jobs = []int{1, 2, 3, 4, 8}

func local(n int, body runtime.Body, opts ...runtime.Option) error {
	return testjob.RunLocal(context.Background(), n, body, opts...)
}

func TestGetReturnsTheValueStoredLast(t *testing.T) {
	for name, opts := range map[string][]runtime.Option{
		"mapped": {runtime.WithProvider("loop")},
		"queued": {runtime.WithProvider("loop"), runtime.WithFMAMax(0)},
		"tcp":    {runtime.WithProvider("tcp")},
	} {
		for _, n := range jobs {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				var out strings.Builder // the first client alone prints
				o := options{keys: 60, ops: 500, shelf: 64 << 10, out: &out}
				require.NoError(t, local(n, o.run, opts...))
				clients := max(1, n-servers(n))
				require.Contains(t, out.String(), fmt.Sprintf("%d clients, %d servers each: %d operations", clients, servers(n), clients*o.ops))
				require.Contains(t, out.String(), fmt.Sprintf(" of %d,", clients*servers(n)*o.shelf))
			})
		}
	}
}

func TestSmallShelvesForgetKeysAndKeepTheRestRight(t *testing.T) {
	var out strings.Builder
	o := options{keys: 100, ops: 2000, shelf: 8 << 10, out: &out}
	require.NoError(t, local(3, o.run))
	require.NotContains(t, out.String(), ", 0 forgotten")
	o.shelf = 512
	require.ErrorIs(t, local(3, o.run), rpipe.ErrTooLarge)
}

func TestQuarterOfTheRanksServes(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 1, 7: 1, 8: 2, 16: 4} {
		require.Equal(t, want, servers(n), "%d ranks", n)
	}
}

// broken runs a client that stores some values and lets damage do its work.
func broken(t *testing.T, damage func(ctx context.Context, w *worker) error) error {
	t.Helper()
	return local(1, func(ctx context.Context, job *runtime.Job) error {
		o := options{keys: 20, ops: 300, shelf: 64 << 10}
		s, err := farheap.Serve(ctx, job.World(), 0, farheap.WithHeap(o.shelf))
		require.NoError(t, err)
		table := newTable()
		require.NoError(t, table.addShelf(ctx, job.World(), 0, o.shelf))
		w, err := o.work(ctx, table, 1)
		require.NoError(t, err)
		require.NoError(t, damage(ctx, w))
		err = w.checkAll(ctx)
		return errors.Join(err, table.close(ctx), s.Close(ctx))
	})
}

func TestCheckFindsAWrongByte(t *testing.T) {
	err := broken(t, func(ctx context.Context, w *worker) error {
		for key, p := range w.t.index {
			v, err := w.t.get(ctx, key)
			return errors.Join(err, w.t.shelves[p.shelf].Put(ctx, p.block, 3, []byte{v[3] + 1}))
		}
		return errors.New("nothing is stored")
	})
	require.ErrorContains(t, err, "does not hold the value stored last")
}

func TestCheckFindsALostKey(t *testing.T) {
	err := broken(t, func(_ context.Context, w *worker) error {
		for key := range w.t.index {
			return w.t.remove(key)
		}
		return errors.New("nothing is stored")
	})
	require.ErrorContains(t, err, "1 keys are missing, 0 were forgotten")
}

func TestCheckFindsAKeyThatWasRemoved(t *testing.T) {
	err := broken(t, func(_ context.Context, w *worker) error {
		for key := range w.t.index {
			delete(w.versions, key)
			return nil
		}
		return errors.New("nothing is stored")
	})
	require.ErrorContains(t, err, "was removed and is there")
}
