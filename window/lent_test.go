package window_test

import (
	"bytes"
	"context"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

type lendKey struct{}

// lending has allocate make windows of memory that the program has.
func lending(ctx context.Context) context.Context { return context.WithValue(ctx, lendKey{}, true) }

// everyKindOnLent checks operations of each kind on windows of the program's memory.
func everyKindOnLent(ctx context.Context, r *testjob.Rank) {
	onLent(ctx, r, lendFromEverywhere, transferEveryType, signalBehindData, computeAtEveryWidth, contend, countUnderLock,
		accumulateEveryType, contendForSlices, moveRandomBlocks)
}

func onLent(ctx context.Context, r *testjob.Rank, bodies ...testjob.Body) {
	for _, body := range bodies {
		body(lending(ctx), r)
		r.NoError(r.World.Barrier(ctx))
	}
}

func TestOperationsOnMemoryOfTheProgram(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		onLent(ctx, r, lendFromEverywhere, signalBehindData, computeAtEveryWidth, moveRandomBlocks)
	})
}

func TestMemoryOfTheProgramBetweenProcesses(t *testing.T) {
	if testwatch.Race {
		t.Skip("processes share no memory that the detector sees")
	}
	for _, provider := range []string{"shm", "tcp"} {
		t.Run(provider, func(t *testing.T) { testjob.Job{Provider: provider, Ranks: 3}.Run(t, "lent") })
	}
	t.Run("without copies", func(t *testing.T) { testjob.Job{Provider: "shm", Ranks: 3}.Run(t, "lent, no copies") })
}

func TestKilledOwnerOfLentMemory(t *testing.T) {
	out := testjob.Job{Provider: "shm", Ranks: 3}.Try(t, "lender dies")
	require.Len(t, out.Failures, 1, "%s\n%s", out.Summary(), out.Output)
	require.Equal(t, unix.SIGKILL, out.Failures[0].Signal, out.Output)
}

// lenderDies kills a rank while the others copy to its memory and ask its CPU.
func lenderDies(ctx context.Context, r *testjob.Rank) {
	victim := r.N - 1
	w, err := window.Create(ctx, r.World, make([]uint64, 100_000))
	r.NoError(err)
	began := allocate[uint64](ctx, r, 1)
	if r.Me == victim {
		_, _, err := window.WaitUntil(ctx, began, window.Elements[uint64]{At: []int{0}, Value: uint64(r.N - 1)})
		r.NoError(err)
		r.Die()
	}
	start := time.Now()
	buf := make([]uint64, 100_000)
	round := 0
	dead(r, repeat(ctx, func() error {
		if round++; round == 3 {
			r.NoError(window.AtomicAdd(ctx, began, victim, 0, 1))
		}
		_, err := window.FetchAdd(ctx, w, victim, r.Me, 1)
		if err == nil && r.Me == 0 {
			err = w.Put(ctx, victim, 0, buf)
		} else if err == nil {
			err = w.Get(ctx, victim, 0, buf)
		}
		return err
	}), start, victim)
}

// globals are the memory of each rank of a process.
var globals [8][2000]int32

// lendFromEverywhere puts and gets elements of the heap, of a global and of a declared array, amid
// garbage collections and the growth of stacks.
func lendFromEverywhere(ctx context.Context, r *testjob.Rank) {
	clear(globals[r.Me][:])
	heap := make([]int32, 3001)
	lendAndMove(ctx, r, heap[1:]) // no cache line begins there
	lendAndMove(ctx, r, globals[r.Me][:])
	var declared [1500]int32
	w := lendAndMove(ctx, r, declared[:])
	if grow(100) == 0 {
		r.Fail("unreachable")
	}
	r.NoError(w.PutValue(ctx, r.Right(), 7, int32(r.Me)))
	r.NoError(w.Fence(ctx))
	r.EqualValues((r.Me+r.N-1)%r.N, declared[7], "the array is where it was")
	r.NoError(w.Free(ctx))
}

// grow uses a deep stack.
func grow(n int) int {
	var use [1 << 10]byte
	use[n] = byte(n)
	if n == 0 {
		return len(use)
	}
	return grow(n-1) + int(use[n]) - n
}

// lendAndMove makes a window of mem and leaves it.
func lendAndMove(ctx context.Context, r *testjob.Rank, mem []int32) *window.Window[int32] {
	mem = mem[:len(mem)-r.Me]
	w, err := window.Create(ctx, r.World, mem, window.WithName("lent"))
	r.NoError(err)
	for to := range r.N {
		r.Equal(len(mem)+r.Me-to, w.Len(to))
	}
	r.Same(&mem[0], &w.Local()[0])
	target := r.Right()
	n := w.Len(target)
	for round := range int32(3) {
		src := make([]int32, n)
		for i := range src {
			src[i] = int32(i)*17 + int32(r.Me)<<20 + round
		}
		goruntime.GC()
		r.NoError(w.Put(ctx, target, 0, src))
		r.NoError(w.Flush(ctx, target))
		got := make([]int32, n)
		r.NoError(w.Get(ctx, target, 0, got))
		r.True(slices.Equal(src, got))
		r.NoError(w.Get(ctx, target, n-3, got[:3]))
		r.Equal(src[n-3:], got[:3])
		request, err := w.StartGet(ctx, target, 1, got[1:])
		r.NoError(err)
		goruntime.GC()
		r.NoError(request.Wait(ctx))
		r.True(slices.Equal(src[1:], got[1:]))
		r.NoError(w.Fence(ctx))
		left := (r.Me + r.N - 1) % r.N
		for i, v := range mem {
			if want := int32(i)*17 + int32(left)<<20 + round; v != want {
				r.Equal(want, v, "element %d", i)
			}
		}
		r.NoError(r.World.Barrier(ctx))
	}
	return w
}

func TestMemoryOfTheProgramOutlivesItsSlice(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w, err := window.Create(ctx, r.World, make([]uint64, 100))
		r.NoError(err)
		for range 3 {
			goruntime.GC()
			_, err := window.FetchAdd(ctx, w, r.Right(), 99, 5)
			r.NoError(err)
		}
		r.NoError(w.Fence(ctx))
		r.EqualValues(15, w.Local()[99])
	})
}

func TestCreateChecksItsArguments(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w, err := window.Create(ctx, r.World, make([]int16, r.Me))
		r.NoError(err)
		r.Zero(w.Len(0))
		r.ErrorIs(w.PutValue(ctx, 0, 0, 1), window.ErrRange)
		_, err = w.Realloc(ctx, 4)
		r.ErrorIs(err, window.ErrLent)
		r.NoError(w.Free(ctx))
		_, err = window.Create(ctx, r.World, make([]int16, 4), window.On(nil))
		r.ErrorIs(err, window.ErrLent, "mem lies where it lies")
		_, err = window.Create[*int](ctx, r.World, nil)
		r.ErrorIs(err, window.ErrType)
		if r.Me == 0 {
			_, err = window.Create(ctx, r.World, make([]int16, 4))
		} else {
			_, err = window.Allocate[int16](ctx, r.World, 4)
		}
		r.ErrorIs(err, runtime.ErrMismatch)
	})
}

// TestPartOfLentMemoryIsAlignedAtEveryRank has one rank lend memory at an odd address.
func TestPartOfLentMemoryIsAlignedAtEveryRank(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		words := make([]uint64, 9)
		odd := 0
		if r.Me == 1 {
			odd = 2
		}
		w, err := window.Create(ctx, r.World, element.Bytes(words)[odd:][:64])
		r.NoError(err)
		_, err = window.Part[uint32](w, 0, 8)
		r.ErrorIs(err, window.ErrAlignment, "also at ranks whose memory is aligned")
		part, err := window.Part[uint16](w, 8, 8)
		r.NoError(err)
		_, err = window.FetchAdd(ctx, part, 1, 2, 300)
		r.NoError(err)
		r.NoError(w.Fence(ctx))
		if r.Me == 1 {
			r.EqualValues(300*r.N, part.Local()[2])
		}
		r.NoError(r.World.Barrier(ctx))
	})
}

// TestFreedMemoryIsTheProgramsAgain has ranks go on with operations while the window is freed.
func TestFreedMemoryIsTheProgramsAgain(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		if c.Mapped() && c.Provider == "loop" {
			t.Skip("Free cannot stop stores to mapped memory: its precondition")
		}
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			mem := make([]byte, 100_000)
			w, err := window.Create(ctx, r.World, mem)
			r.NoError(err)
			busy, ended := make(chan struct{}), make(chan error)
			go func() {
				src := bytes.Repeat([]byte{1}, len(mem))
				for i := 0; ; i++ {
					n := 8 + i*i%len(src)
					if err := w.Put(ctx, r.Right(), len(src)-n, src[:n]); err != nil {
						ended <- err
						return
					}
					if i == 3 {
						close(busy)
					}
				}
			}()
			<-busy
			r.NoError(w.Free(ctx))
			clear(mem)
			r.ErrorIs(<-ended, window.ErrFreed)
			r.NoError(r.World.Barrier(ctx))
			r.Equal(-1, slices.Index(mem, 1), "a put has arrived behind Free")
		})
	})
}

func TestDeathOfTheOwnerOfLentMemory(t *testing.T) {
	for _, name := range []string{"flush", "get on a queue", "atomic", "fence", "element"} {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
				err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					victim := r.N - 1
					w := allocate[int](lending(ctx), r, r.N)
					r.NoError(w.PutValue(ctx, victim, r.Me, 1))
					err := w.Fence(ctx)
					if r.Me == victim {
						r.Die()
					}
					start := time.Now()
					if err == nil {
						err = waits[name](ctx, r, w, victim)
					}
					dead(r, err, start, victim)
				})
				require.ErrorContains(t, err, "ended without returning")
			})
		})
	}
}
