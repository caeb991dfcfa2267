package rmalloc

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkOneBlock is the life of a block in an otherwise empty heap: all that
// a pipe's writer does for it without communication.
func BenchmarkOneBlock(b *testing.B) {
	for _, p := range policies {
		b.Run(p.String(), func(b *testing.B) {
			h := newHeap(b, 1<<20, 0, p)
			b.ReportAllocs()
			for b.Loop() {
				a, _ := h.Alloc(64)
				_ = h.Send(a)
				_ = h.Release(a.Offset()/Granule, 1)
			}
		})
	}
}

// BenchmarkStream keeps some blocks in flight, freed in order.
func BenchmarkStream(b *testing.B) {
	for _, p := range policies {
		for _, size := range []int{8, 4096} {
			b.Run(fmt.Sprintf("%v/%dB", p, size), func(b *testing.B) {
				h := newHeap(b, 1<<20, 0, p)
				var flight [64]Addr
				for i := range flight {
					flight[i] = alloc(b, h, size)
					require.NoError(b, h.Send(flight[i]))
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i = (i + 1) % len(flight) {
					_ = h.Release(flight[i].Offset()/Granule, Granules(size))
					flight[i], _ = h.Alloc(size)
					_ = h.Send(flight[i])
				}
			})
		}
	}
}

// BenchmarkFragmented replaces random blocks of a heap that is half full. Their
// lengths lie between 1 byte and twice the mean.
func BenchmarkFragmented(b *testing.B) {
	for _, p := range policies {
		for _, mean := range []int{128, 4096, 64 << 10} {
			b.Run(fmt.Sprintf("%v/%dB", p, mean), func(b *testing.B) { fragmented(b, p, mean) })
		}
	}
}

func fragmented(b *testing.B, p Policy, mean int) {
	const blocks = 500
	h := newHeap(b, (2*blocks*mean+Granule-1)/Granule*Granule, 0, p)
	random := rand.New(rand.NewPCG(1, 2))
	type block struct{ offset, count int }
	var live [blocks]block
	full := 0
	replace := func(i int) {
		n := 1 + random.IntN(2*mean)
		a, err := h.Alloc(n)
		if err != nil {
			full++
			return
		}
		_ = h.Send(a)
		if live[i].count > 0 {
			_ = h.Release(live[i].offset, live[i].count)
		}
		live[i] = block{a.Offset() / Granule, Granules(n)}
	}
	for i := range 20 * blocks {
		replace(i % blocks)
	}
	full = 0
	b.ReportAllocs()
	for b.Loop() {
		replace(random.IntN(blocks))
	}
	s := h.Stats()
	b.ReportMetric(float64(s.Holes), "holes")
	b.ReportMetric(s.Fragmentation(), "fragmentation")
	b.ReportMetric(float64(full)/float64(b.N), "full/op")
}

// BenchmarkPending is the reader's part for a block, freed in order or not.
func BenchmarkPending(b *testing.B) {
	const batch = 256
	order := map[string][]int{"in order": {}, "random": rand.New(rand.NewPCG(1, 2)).Perm(batch)}
	for i := range batch {
		order["in order"] = append(order["in order"], i)
	}
	for name, offsets := range order {
		b.Run(name, func(b *testing.B) {
			p := NewPending(batch)
			dst := make([]Range, 0, batch)
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % batch {
				if i == 0 {
					dst = p.Drain(dst[:0])
				}
				_ = p.Insert(offsets[i]*3, 3)
			}
		})
	}
}

// BenchmarkHeld is the reader's part for a block from flag to free.
func BenchmarkHeld(b *testing.B) {
	h, err := NewHeld(1<<20, 0)
	require.NoError(b, err)
	taker := NewFlagTaker(64, 1<<20, true)
	b.ReportAllocs()
	for b.Loop() {
		f, _ := taker.Take(Flag{Data, 5, 100}.Encode(taker.Lap()))
		a, _ := h.Take(f.Offset, f.Length)
		_, _ = h.Free(a)
	}
}

// BenchmarkTag is a tag's way through the ring.
func BenchmarkTag(b *testing.B) {
	ring, taker := NewTagRing(1024), NewTagTaker(1<<20, 1024)
	b.ReportAllocs()
	for b.Loop() {
		batch, _ := ring.Next(1)
		if _, verdict := taker.TakeBelow(ring.Tail(), Range{5, 3}.Tag(batch.Lap)); verdict != Ready {
			b.Fatal(verdict)
		}
	}
}
