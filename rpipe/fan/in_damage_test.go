package fan_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// Numbers that are not those of writers cost time, and lose no block.
func TestFanInReadsAllBlocksWithDamagedSummary(t *testing.T) {
	for name, change := range map[string]func(word uint64) uint64{
		"more":   func(w uint64) uint64 { return w + 1 },
		"less":   func(w uint64) uint64 { return w - 2 },
		"none":   func(uint64) uint64 { return 0 },
		"any":    func(uint64) uint64 { return rand.Uint64() },
		"beyond": func(w uint64) uint64 { return w + 1<<63 },
	} {
		t.Run(name, func(t *testing.T) {
			testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
				f, writers := pipetest.FanOfMany(ctx, r, 100)
				for i := range 300 {
					w := i * 37 % len(writers)
					r.NoError(writers[w].Send(ctx, []int32{int32(i)}))
					if i%3 == 1 && i > len(writers) {
						pipetest.ScribbleSummary(f.Summary(), w, change)
					}
					b, from, err := f.Read(ctx)
					r.NoError(err)
					r.Equal(w, from)
					r.EqualValues(i, b.Mem()[0])
					r.NoError(f.Free(b))
				}
				for i := range 2 {
					pipetest.ScribbleSummary(f.Summary(), i, change)
				}
				pipetest.CloseMany(ctx, r, f, writers)
			})
		})
	}
}
