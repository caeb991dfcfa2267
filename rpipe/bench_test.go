package rpipe_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

// BenchmarkRoundOfABlock is Alloc, Write, Read and Free of one rank's pipe to
// itself: what the calls cost where nothing travels.
func BenchmarkRoundOfABlock(b *testing.B) {
	for _, policy := range policies {
		for _, sync := range []rpipe.Sync{rpipe.Deferred, rpipe.Immediate} {
			b.Run(fmt.Sprintf("%v/%v", policy, sync), func(b *testing.B) {
				round(b, 1, func(w *rpipe.Writer[int64], r *rpipe.Reader[int64]) (err error) {
					ctx := b.Context()
					block, _ := w.Alloc(ctx, 1)
					block.Mem()[0] = 1
					if err = w.Write(ctx, block); err == nil {
						block, _ = r.Read(ctx)
						err = r.Free(block)
					}
					return err
				}, rpipe.WithPolicy(policy), rpipe.WithSync(sync))
			})
		}
	}
}

// BenchmarkAllocWrite and BenchmarkReadFree are its two halves.
func BenchmarkAllocWrite(b *testing.B) { half(b, true) }
func BenchmarkReadFree(b *testing.B)   { half(b, false) }

func half(b *testing.B, writer bool) {
	const batch = 512
	round(b, batch, func(w *rpipe.Writer[int64], r *rpipe.Reader[int64]) error {
		ctx := b.Context()
		if !writer {
			b.StopTimer()
		}
		for range batch {
			block, _ := w.Alloc(ctx, 1)
			_ = w.Write(ctx, block)
		}
		if writer {
			b.StopTimer()
		} else {
			b.StartTimer()
		}
		for range batch {
			block, _ := r.Read(ctx)
			_ = r.Free(block)
		}
		if writer {
			b.StartTimer()
		}
		return nil
	}, rpipe.WithWidth(2*batch))
}

// BenchmarkSendOfLongBlocks sends blocks that another goroutine reads.
func BenchmarkSendOfLongBlocks(b *testing.B) {
	for _, n := range []int{64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			src, taken := make([]int64, n/8), make(chan int64)
			b.SetBytes(int64(n))
			round(b, 1, func(w *rpipe.Writer[int64], r *rpipe.Reader[int64]) (err error) {
				go func() {
					sum := int64(0)
					block, _ := r.Read(b.Context())
					for _, v := range block.Mem() {
						sum += v
					}
					_ = r.Free(block)
					taken <- sum
				}()
				err = w.Send(b.Context(), src)
				<-taken
				return err
			}, rpipe.WithHeap(4*n))
		})
	}
}

// round runs f b.N times in all, which does batch rounds each.
func round(b *testing.B, batch int, f func(w *rpipe.Writer[int64], r *rpipe.Reader[int64]) error, opts ...rpipe.Option) {
	c := testjob.Config{Provider: "loop", Ranks: 1}
	_ = runtime.RunLocal(context.Background(), 1, func(ctx context.Context, job *runtime.Job) error {
		w, err := rpipe.OpenWriter[int64](ctx, job.World(), 0, opts...)
		if err != nil {
			b.Error(err)
			return err
		}
		r, err := rpipe.OpenReader[int64](ctx, job.World(), 0, opts...)
		if err != nil {
			b.Error(err)
			return err
		}
		b.ReportAllocs()
		b.ResetTimer()
		for i := 0; i < b.N; i += batch {
			if err := f(w, r); err != nil {
				b.Error(err)
				return err
			}
		}
		return nil
	}, c.Options()...)
}
