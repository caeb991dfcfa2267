package rpipe_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// A program runs a random writer and a random reader. Only the seed of the written
// blocks is common to both.
type program struct {
	seed   uint64
	blocks int
	heap   int
	opts   []rpipe.Option
}

// content is block i: its number, then bytes that follow from it.
func (p *program) content(i int) []byte {
	rnd := rand.New(rand.NewPCG(p.seed, uint64(i)))
	b := make([]byte, 8+rnd.IntN(p.heap/8-8))
	if rnd.IntN(10) == 0 {
		b = b[:8]
	}
	for j := range b {
		b[j] = byte(i*7 + j*13)
	}
	binary.NativeEndian.PutUint64(b, uint64(i))
	return b
}

// write writes all blocks in order. At times it takes two before it writes the
// first, or takes one in vain.
func (p *program) write(ctx context.Context, w *rpipe.Writer[byte]) error {
	rnd := rand.New(rand.NewPCG(p.seed, 1))
	var ahead []rpipe.Block[byte]
	for i := 0; i < p.blocks || len(ahead) > 0; {
		if i < p.blocks && len(ahead) < 2 && (len(ahead) == 0 || rnd.IntN(2) == 0) {
			src := p.content(i)
			b, err := w.Alloc(ctx, len(src))
			if err != nil {
				return err
			}
			if rnd.IntN(8) == 0 {
				if err := w.Free(b); err != nil {
					return err
				}
				continue
			}
			copy(b.Mem(), src)
			ahead = append(ahead, b)
			i++
			continue
		}
		if err := w.Write(ctx, ahead[0]); err != nil {
			return err
		}
		ahead = ahead[1:]
	}
	return nil
}

// read reads all blocks, keeps some for a while and frees them in any order. It
// holds none while it waits, since the writer may wait for them.
func (p *program) read(ctx context.Context, r *rpipe.Reader[byte]) error {
	rnd := rand.New(rand.NewPCG(p.seed, 2))
	type held struct {
		b rpipe.Block[byte]
		i int
	}
	var kept []held
	drop := func(k int) error {
		h := kept[k]
		kept = slices.Delete(kept, k, k+1)
		if !slices.Equal(h.b.Mem(), p.content(h.i)) {
			return fmt.Errorf("block %d at %v is not what was written", h.i, h.b.Addr())
		}
		return r.Free(h.b)
	}
	for i := 0; ; {
		b, err := r.TryRead()
		if errors.Is(err, rpipe.ErrWouldBlock) {
			for len(kept) > 0 {
				if err := drop(rnd.IntN(len(kept))); err != nil {
					return err
				}
			}
			b, err = r.Read(ctx)
		}
		switch {
		case errors.Is(err, io.EOF) && i == p.blocks:
			for len(kept) > 0 {
				if err := drop(0); err != nil {
					return err
				}
			}
			return nil
		case err != nil:
			return fmt.Errorf("after %d blocks: %w", i, err)
		case !slices.Equal(b.Mem(), p.content(i)):
			return fmt.Errorf("block %d at %v does not hold what was written", i, b.Addr())
		}
		kept = append(kept, held{b, i})
		i++
		for rnd.IntN(3) > 0 && len(kept) > 0 {
			if err := drop(rnd.IntN(len(kept))); err != nil {
				return err
			}
		}
	}
}

// run runs the program over a link.
func (p *program) run(ctx context.Context, r *testjob.Rank, over func(f pipeBody) pipeBody) {
	over(func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) { r.NoError(p.write(ctx, w)) },
			func(rd *rpipe.Reader[byte]) { r.NoError(p.read(ctx, rd)) }, opts...)
	})(ctx, r, p.opts)
}

var policies = []rpipe.Policy{rpipe.NextFit{}, rpipe.FirstFit{}, rpipe.BestFit{}, rpipe.WorstFit{}}

// drawProgram makes a program of a seed: any policy, either synchronization, push
// or pull, any width and few or many blocks.
func drawProgram(seed uint64, blocks int) *program {
	rnd := rand.New(rand.NewPCG(seed, 3))
	p := &program{seed: seed, blocks: blocks, heap: 64 * (16 + rnd.IntN(200))}
	p.opts = []rpipe.Option{rpipe.WithHeap(p.heap), rpipe.WithWidth(1 + rnd.IntN(20)), rpipe.WithPolicy(policies[seed%4]),
		rpipe.WithSync(rpipe.Sync(1 + seed/4%2)), rpipe.WithBlocks(3 + rnd.IntN(40))}
	if seed/8%2 == 1 {
		p.opts = append(p.opts, rpipe.WithPull())
	}
	if rnd.IntN(2) == 0 {
		p.opts = append(p.opts, rpipe.WithTwoPuts())
	}
	if rnd.IntN(2) == 0 {
		p.opts = append(p.opts, rpipe.WithFMA(rnd.IntN(p.heap)))
	}
	return p
}

func TestRandomProgramReadsItsBlocks(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		programs, blocks := uint64(8), testwatch.Rounds(400)
		if testjob.Soak() {
			programs, blocks = 160, 2000
		}
		if c.Provider == "tcp" || c.NIC {
			blocks /= 2
		}
		for seed := range programs {
			p := drawProgram(seed, blocks)
			for link, over := range links {
				t.Run(fmt.Sprint(link, "/", seed), func(t *testing.T) {
					c.Run(t, func(ctx context.Context, r *testjob.Rank) { p.run(ctx, r, over) })
				})
			}
		}
	})
}

// Memory that is mapped nowhere, requests that are late, reordered and refused
// for want of room.
func TestRandomProgramReadsItsBlocksOverFaultyProvider(t *testing.T) {
	for seed := range uint64(16) {
		p := drawProgram(seed, 150)
		c := testjob.Config{Provider: "loop", Queued: true, Ranks: 2}
		for _, over := range links {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) { p.run(ctx, r, over) }, pipetest.Disturbed(seed))
		}
	}
}

func TestRankSendsToItself(t *testing.T) {
	testjob.EachTransport(t, 1, func(t *testing.T, c testjob.Config) {
		for seed := range uint64(testwatch.Rounds(16)) {
			p := drawProgram(seed, 100)
			alone := func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
				w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, opts...)
				r.NoError(err)
				rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
				r.NoError(err)
				done := make(chan error, 1)
				go func() { done <- errors.Join(p.write(ctx, w), w.Close(ctx)) }()
				r.NoError(p.read(ctx, rd))
				r.NoError(<-done)
				r.NoError(rd.Close(ctx))
			}
			for _, over := range links {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) { over(alone)(ctx, r, p.opts) })
			}
		}
	})
}
