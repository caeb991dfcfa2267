package rpipe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// widths of pipes whose ends die: the writer waits for the reader, or not.
func deathOptions(opts []rpipe.Option) []rpipe.Option {
	return append(opts, rpipe.WithWidth(3), rpipe.WithHeap(64<<10))
}

// outliveReader writes until the reader is known to be dead.
func outliveReader(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
	w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, deathOptions(opts)...)
	r.NoError(err)
	for err == nil {
		err = w.Send(ctx, make([]byte, 5000))
	}
	r.ErrorIs(err, runtime.ErrRankDead)
	r.NoError(ctx.Err())
	if err := w.Close(ctx); err != nil {
		r.ErrorIs(err, runtime.ErrRankDead)
	}
}

// outliveWriter reads until the writer is known to be dead.
func outliveWriter(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
	rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, deathOptions(opts)...)
	r.NoError(err)
	for err == nil {
		var b rpipe.Block[byte]
		if b, err = rd.Read(ctx); err == nil {
			r.NoError(rd.Free(b))
		}
	}
	r.ErrorIs(err, runtime.ErrRankDead)
	r.NoError(rd.Close(ctx))
}

// dieReading reads some blocks, and dies with a writer that goes on.
func dieReading(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
	rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, deathOptions(opts)...)
	r.NoError(err)
	for range 20 {
		_, err := rd.Recv(ctx, nil)
		r.NoError(err)
	}
	r.Die()
}

// dieWriting dies in the middle of writing.
func dieWriting(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
	w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, deathOptions(opts)...)
	r.NoError(err)
	for range 20 {
		r.NoError(w.Send(ctx, make([]byte, 5000)))
	}
	b, err := w.Alloc(ctx, 5000)
	r.NoError(err)
	b.Mem()[0] = 1
	r.Die()
}

func TestWriterOutlivesReader(t *testing.T) {
	eachDeath(t, outliveReader, dieReading)
}

func TestReaderOutlivesWriter(t *testing.T) {
	eachDeath(t, dieWriting, outliveWriter)
}

func eachDeath(t *testing.T, rank0, rank1 pipeBody) {
	for part, k := range kinds {
		for _, c := range testjob.Share(t.Name(), 2, part, len(kinds)) {
			t.Run(c.String()+"/"+k.name(), func(t *testing.T) {
				start := time.Now()
				err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					body := rank0
					if r.Me == 1 {
						body = rank1
					}
					k.over()(body)(ctx, r, k.opts())
				})
				require.ErrorContains(t, err, "ended without returning")
				require.NotErrorIs(t, err, testwatch.ErrStuck)
				t.Logf("over after %v", time.Since(start))
			})
		}
	}
}

// bodiesOfDeath are the same as processes, one of which is killed.
func bodiesOfDeath() map[string]testjob.Body {
	all := map[string]testjob.Body{}
	for name, opts := range pipetest.Modes {
		all["reader dies/"+name] = func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				outliveReader(ctx, r, opts)
				fmt.Println("the writer lives")
			} else {
				dieReading(ctx, r, opts)
			}
		}
		all["writer dies/"+name] = func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				dieWriting(ctx, r, opts)
			} else {
				outliveWriter(ctx, r, opts)
				fmt.Println("the reader lives")
			}
		}
	}
	return all
}

func TestProcessesOutliveTheirPeer(t *testing.T) {
	for _, j := range testjob.Processes(2) {
		for name := range bodiesOfDeath() {
			t.Run(j.String()+"/"+name, func(t *testing.T) {
				out := j.Try(t, name)
				require.NotZero(t, out.ExitCode)
				survivor := "the writer lives"
				if strings.HasPrefix(name, "writer dies") {
					survivor = "the reader lives"
				}
				require.Contains(t, out.Output, survivor, out.Summary())
			})
		}
	}
}

func TestEveryWaitEndsWithJob(t *testing.T) {
	for name, opts := range map[string][]rpipe.Option{
		"a pipe that the other rank never opens": {rpipe.WithName("alone")},
		"a full heap":                            {rpipe.WithHeap(64)},
		"a full pipe":                            {rpipe.WithWidth(1)},
	} {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
				err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					if r.Me == 1 {
						if len(name) < 20 {
							_, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
							r.NoError(err)
						}
						time.Sleep(2 * time.Millisecond) // most of the waits wait by now
						r.Job.Abort(errors.New("the input is wrong"))
						return
					}
					// Without the body's context, so that the calls must notice.
					ctx = context.WithoutCancel(ctx)
					w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
					r.NoError(err)
					for err == nil {
						err = w.Send(ctx, []byte{1})
					}
					r.ErrorIs(err, runtime.ErrAborted)
					_, err = rpipe.OpenReader[byte](ctx, r.World, 1, rpipe.WithName("unheard of"))
					r.NoError(err)
				})
				require.ErrorIs(t, err, runtime.ErrAborted)
			})
		})
	}
}
