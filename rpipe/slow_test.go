package rpipe_test

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// Ranks 0 to 5 of a crowd are quick, rank 6 is slow and rank 7 is stopped.
const (
	quickRanks  = 6
	slowRank    = 6
	stoppedRank = 7
	crowdRanks  = 8

	crowdRounds = 100
	crowdWidth  = 2          // of each pipe, in blocks
	slowness    = 8          // rounds of the quick ranks for each of the slow one
	goAhead     = crowdRanks // the element by which rank 0 lets a receiver read, and a receiver lets rank 0 stop it
	noLimit     = 1 << 40
)

// A crowd has each quick rank write to three ranks, by a pipe and by a window: its right quick
// neighbor, the slow rank and the stopped rank.
type crowd struct {
	rounds       int
	allQuick     bool                           // the slow rank and the stopped one are quick, too
	stop, resume func(r *testjob.Rank, pid int) // of the stopped rank's process; may be nil
	took         *time.Duration                 // of rank 0's rounds; may be nil
}

func stopProcess(r *testjob.Rank, pid int)   { r.NoError(unix.Kill(pid, unix.SIGSTOP)) }
func resumeProcess(r *testjob.Rank, pid int) { r.NoError(unix.Kill(pid, unix.SIGCONT)) }

// TestSlowReceiversStopNoOtherRank counts: all rounds of the quick ranks end while the stopped
// rank has taken nothing and the slow rank an eighth.
func TestSlowReceiversStopNoOtherRank(t *testing.T) {
	testjob.EachTransport(t, crowdRanks, func(t *testing.T, c testjob.Config) {
		c.Run(t, crowd{rounds: crowdRounds}.body)
	})
	for _, j := range testjob.Processes(crowdRanks) {
		j.Env = append(j.Env, "GRUN_PEER_TIMEOUT=1h") // a busy machine may take long
		t.Run(j.String(), func(t *testing.T) { j.Run(t, "beside slow receivers") })
	}
}

func (c crowd) body(ctx context.Context, r *testjob.Rank) {
	w, err := window.Allocate[int64](ctx, r.World, crowdRanks+1)
	r.NoError(err)
	color := 0
	if r.Me >= quickRanks {
		color = r.Me
	}
	quick, err := r.World.Split(ctx, color, r.Me)
	r.NoError(err)
	all, err := r.World.Exchange(ctx, binary.LittleEndian.AppendUint32(nil, uint32(os.Getpid())))
	r.NoError(err)
	if r.Me < quickRanks {
		c.write(ctx, r, w, quick, int(binary.LittleEndian.Uint32(all[stoppedRank])))
		r.NoError(r.World.Barrier(ctx))
		r.EqualValues(c.rounds, w.Local()[(r.Me+quickRanks-1)%quickRanks])
		return
	}
	c.read(ctx, r, w)
	r.NoError(r.World.Barrier(ctx))
	for writer, last := range w.Local()[:quickRanks] {
		r.EqualValues(c.rounds, last, "the last value of rank %d", writer)
	}
}

// write is a quick rank.
func (c crowd) write(ctx context.Context, r *testjob.Rank, w *window.Window[int64], quick *runtime.Team, pid int) {
	right, left := (r.Me+1)%quickRanks, (r.Me+quickRanks-1)%quickRanks
	next, prev := c.openWriter(ctx, r, right), c.openReader(ctx, r, left)
	slow, stopped := c.openWriter(ctx, r, slowRank), c.openWriter(ctx, r, stoppedRank)
	r.NoError(slow.Send(ctx, []int64{0}))
	r.NoError(stopped.Send(ctx, []int64{0}))
	r.NoError(r.World.Barrier(ctx), "the receivers have read the first blocks")
	if r.Me == 0 && c.allQuick {
		c.release(ctx, r, w)
	} else if r.Me == 0 && c.stop != nil {
		_, _, err := window.WaitUntil(ctx, w, window.Elements[int64]{At: []int{goAhead}, Condition: window.AtLeast, Value: 1})
		r.NoError(err)
		c.stop(r, pid)
	}
	r.NoError(quick.Barrier(ctx))
	var others sync.WaitGroup
	var toSlow, toStopped atomic.Int64 // blocks that the pipes took
	others.Go(func() { c.send(ctx, r, slow, &toSlow) })
	others.Go(func() { c.send(ctx, r, stopped, &toStopped) })
	others.Go(func() { c.put(ctx, r, w, slowRank) })
	others.Go(func() { c.put(ctx, r, w, stoppedRank) })

	start := time.Now()
	got := make([]int64, 1)
	for i := range int64(c.rounds) {
		r.NoError(next.Send(ctx, []int64{i + 1}))
		_, err := prev.Recv(ctx, got)
		r.NoError(err)
		r.Equal(i+1, got[0])
		r.NoError(w.PutValue(ctx, right, r.Me, i+1))
		r.NoError(w.Flush(ctx, right))
		if r.Me == 0 && !c.allQuick && i%slowness == 0 {
			c.let(ctx, r, w, slowRank, i/slowness+1)
		}
	}
	r.NoError(quick.Barrier(ctx), "all quick ranks are through")
	if r.Me == 0 && c.took != nil {
		*c.took = time.Since(start)
	}
	if !c.allQuick {
		r.LessOrEqual(toSlow.Load(), int64(c.rounds/slowness+1+crowdWidth))
		r.LessOrEqual(toStopped.Load(), int64(crowdWidth))
		r.NoError(quick.Barrier(ctx), "all have looked")
		if r.Me == 0 {
			if c.resume != nil {
				c.resume(r, pid)
			}
			c.release(ctx, r, w)
		}
	}
	others.Wait()
	r.NoError(next.CloseWrite(ctx))
	_, err := prev.Recv(ctx, got)
	r.Equal(io.EOF, err)
	for _, end := range []interface{ Close(context.Context) error }{prev, next, slow, stopped} {
		r.NoError(end.Close(ctx))
	}
}

// release lets the receivers read all that comes.
func (c crowd) release(ctx context.Context, r *testjob.Rank, w *window.Window[int64]) {
	c.let(ctx, r, w, slowRank, noLimit)
	c.let(ctx, r, w, stoppedRank, noLimit)
}

// let writes the element for which a rank waits: a receiver for a number of blocks of each pipe, rank 0 for the
// rank to stop. The write is an atomic, since the rank waits meanwhile.
func (c crowd) let(ctx context.Context, r *testjob.Rank, w *window.Window[int64], waiting int, blocks int64) {
	_, err := window.Swap(ctx, w, waiting, goAhead, blocks)
	r.NoError(err)
}

// BenchmarkRoundOfQuickRanks is a block and a put of each quick rank. The two other ranks are
// quick as well, or slow and stopped.
func BenchmarkRoundOfQuickRanks(b *testing.B) {
	for _, provider := range []string{"loop", "shm", "tcp"} {
		for _, allQuick := range []bool{true, false} {
			name := "beside-slow-and-stopped"
			if allQuick {
				name = "all-quick"
			}
			b.Run(provider+"/"+name, func(b *testing.B) {
				var took time.Duration
				testjob.Config{Provider: provider, Ranks: crowdRanks}.Run(b, crowd{rounds: b.N, allQuick: allQuick, took: &took}.body)
				b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/round")
			})
		}
	}
}

// send writes all blocks but the first one, and counts them.
func (c crowd) send(ctx context.Context, r *testjob.Rank, p *rpipe.Writer[int64], sent *atomic.Int64) {
	for i := range int64(c.rounds) {
		r.NoError(p.Send(ctx, []int64{i + 1}))
		sent.Add(1)
	}
}

// put writes this rank's element at a target, again and again.
func (c crowd) put(ctx context.Context, r *testjob.Rank, w *window.Window[int64], target int) {
	for i := range int64(c.rounds) {
		r.NoError(w.PutValue(ctx, target, r.Me, i+1))
		r.NoError(w.Flush(ctx, target))
	}
}

// read is a receiver: it reads a block of each quick rank, then one more for each unit of its
// element goAhead.
func (c crowd) read(ctx context.Context, r *testjob.Rank, w *window.Window[int64]) {
	var pipes []*rpipe.Reader[int64]
	for from := range quickRanks {
		pipes = append(pipes, c.openReader(ctx, r, from))
	}
	got := make([]int64, 1)
	for i := range int64(c.rounds) + 1 {
		if i == 1 {
			r.NoError(r.World.Barrier(ctx), "the first blocks are read")
			if r.Me == stoppedRank { // it has released all ranks from the barrier
				c.let(ctx, r, w, 0, 1)
			}
		}
		if i > 0 {
			_, _, err := window.WaitUntil(ctx, w, window.Elements[int64]{At: []int{goAhead}, Condition: window.AtLeast, Value: i})
			r.NoError(err)
		}
		for _, p := range pipes {
			_, err := p.Recv(ctx, got)
			r.NoError(err)
			r.Equal(i, got[0])
		}
	}
	for _, p := range pipes {
		_, err := p.Recv(ctx, got)
		r.Equal(io.EOF, err)
		r.NoError(p.Close(ctx))
	}
}

func (c crowd) openWriter(ctx context.Context, r *testjob.Rank, to int) *rpipe.Writer[int64] {
	p, err := rpipe.OpenWriter[int64](ctx, r.World, to, rpipe.WithWidth(crowdWidth))
	r.NoError(err)
	return p
}

func (c crowd) openReader(ctx context.Context, r *testjob.Rank, from int) *rpipe.Reader[int64] {
	p, err := rpipe.OpenReader[int64](ctx, r.World, from, rpipe.WithWidth(crowdWidth))
	r.NoError(err)
	return p
}
