//go:build linux

package shm_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// These are places in the arena of each rank.
const (
	flagAt    = 64
	counterAt = 128
	scratchAt = 192
	dataAt    = 4096
)

// These are sizes of the tests of two processes.
const (
	adds      = 20_000
	rounds    = 2000
	asleep    = 10 // rounds in which the peer certainly sleeps
	large     = 1<<20 + 11
	pipelined = 300
)

var roles = map[string]func(testing.TB, *bufio.Reader, io.Writer){
	"partner":  partner,
	"ponger":   ponger,
	"sleeper":  sleeper,
	"leaver":   leaver,
	"neighbor": showsItself,
}

// word returns a word of the rank's own arena.
func (r *rank) word(offset int) *atomic.Uint64 {
	return atomics.Word64(r.arena.Bytes()[offset : offset+8])
}

// await waits on the bell until the word has the value.
func (r *rank) await(offset int, want uint64) {
	r.t.Helper()
	ctx, cancel := testwatch.With(context.Background())
	defer cancel()
	w := r.word(offset)
	require.NoError(r.t, r.bell.Wait(ctx, func() bool { return w.Load() == want }), "waiting for %d, is %d", want, w.Load())
}

// store writes v to the peer's word at offset.
func (r *rank) store(offset uint64, v uint64) {
	r.t.Helper()
	src := r.arena.Bytes()[scratchAt : scratchAt+8]
	binary.NativeEndian.PutUint64(src, v)
	r.do(write(r.peer.Add(offset), src))
}

func TestTwoProcesses(t *testing.T) {
	r, c := newRank(t, nil), startChild(t, "partner")
	r.meet(c.in, c.out)

	t.Log("write: data, then flag")
	r.post(write(r.peer.Add(dataAt), pattern(100_000, 1)))
	r.store(flagAt, 1)
	r.await(flagAt, 1)
	require.Equal(t, pattern(50_000, 2), r.arena.Bytes()[dataAt:dataAt+50_000])

	t.Log("read")
	got := make([]byte, 777)
	r.do(read(r.peer.Add(dataAt+100), got))
	require.Equal(t, pattern(100_000, 1)[100:877], got)

	t.Log("atomics against CPU atomics of the owner")
	old := make([]byte, 8)
	for range adds {
		r.do(driver.WorkRequest{Op: driver.OpFetchAdd, Operand: 3, Local: segments(old), Remote: r.peer.Add(counterAt)})
	}
	r.store(flagAt, 2)
	r.await(flagAt, 2)
	r.do(read(r.peer.Add(counterAt), old))
	require.Equal(t, uint64(4*adds), binary.NativeEndian.Uint64(old))

	t.Log("messages: one large, many pipelined")
	r.post(send(1, pattern(large, 4)))
	require.EqualValues(t, 1, r.next().ID)
	bufs := make([]byte, 16*8)
	for i := range uint64(16) {
		r.recv(i, bufs[i*8:i*8+8])
	}
	r.store(flagAt, 3)
	for i := range uint64(pipelined) {
		wc := r.next()
		require.Equal(t, driver.OpRecv, wc.Op)
		require.Equal(t, i%16, wc.ID)
		require.Equal(t, i, binary.NativeEndian.Uint64(bufs[wc.ID*8:]))
		r.recv(wc.ID, bufs[wc.ID*8:wc.ID*8+8])
	}
	c.ended(t)
}

func partner(t testing.TB, in *bufio.Reader, out io.Writer) {
	r := newRank(t, nil)
	message := make([]byte, large)
	r.modify(driver.StateInit, nil)
	r.modify(driver.StateReset, nil)
	r.meet(in, out)
	r.recv(1, message)

	r.await(flagAt, 1)
	require.Equal(t, pattern(100_000, 1), r.arena.Bytes()[dataAt:dataAt+100_000])
	r.post(write(r.peer.Add(dataAt), pattern(50_000, 2)))
	r.store(flagAt, 1)

	for range adds {
		r.word(counterAt).Add(1)
	}
	r.await(flagAt, 2)
	r.store(flagAt, 2)

	wc := r.next()
	require.Equal(t, large, wc.Bytes)
	require.Equal(t, pattern(large, 4), message)
	r.await(flagAt, 3)
	for i := range uint64(pipelined) {
		wr := send(i, word(i))
		wr.Flags |= driver.Inline
		r.post(wr)
		require.Equal(t, i, r.next().ID)
	}
	_, _ = in.ReadByte() // the memory stays until the peer has finished
}

// pause ends at once, or about when the peer falls asleep. So stores meet
// waiters that are awake, asleep and about to sleep. On a busy machine waiters
// fall asleep late: only a few rounds wait until the peer sleeps.
func (r *rank) pause(rng *rand.Rand, round uint64) {
	surely := round%(rounds/asleep) == 0
	if rng.IntN(4) != 0 && !surely {
		return
	}
	peer := r.qp.(driver.Mapper).PeerBell().(*wait.Bell)
	watched, stop := testwatch.With(context.Background())
	defer stop()
	for start := time.Now(); !peer.Waiting() && (surely || time.Since(start) < 10*time.Millisecond); {
		require.NoError(r.t, watched.Err())
		time.Sleep(10 * time.Microsecond)
	}
	for range rng.IntN(3000) {
		peer.Waiting() // some nanoseconds
	}
}

func TestNoWakeUpBetweenProcessesIsLost(t *testing.T) {
	r, c := newRank(t, nil), startChild(t, "ponger")
	r.meet(c.in, c.out)
	rng := rand.New(rand.NewPCG(1, 2))
	mem, err := r.qp.(driver.Mapper).Map(context.Background(), r.peer.Add(flagAt), 8, driver.RemoteWrite)
	require.NoError(t, err)
	bell := r.qp.(driver.Mapper).PeerBell()
	for i := range uint64(rounds) {
		r.pause(rng, i)
		if i%2 == 0 {
			r.store(flagAt, i+1)
		} else {
			atomics.Word64(mem).Store(i + 1) // without the queue
			bell.Ring()
		}
		r.await(flagAt, i+1)
	}
	t.Logf("%d rounds, parked %d times here", rounds, r.bell.Parks())
	require.GreaterOrEqual(t, r.bell.Parks(), uint64(asleep), "too few waiters slept: this shows nothing")
	c.ended(t)
}

func ponger(t testing.TB, in *bufio.Reader, out io.Writer) {
	r := newRank(t, nil)
	r.meet(in, out)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range uint64(rounds) {
		r.await(flagAt, i+1)
		r.pause(rng, i)
		r.store(flagAt, i+1)
	}
	_, _ = in.ReadByte()
}

func TestKilledPeerEndsWaitingRequests(t *testing.T) {
	events := make(chan driver.AsyncEvent, 4)
	r, c := newRank(t, func(ev driver.AsyncEvent) { events <- ev }), startChild(t, "sleeper")
	r.meet(c.in, c.out)
	r.recv(7, make([]byte, 8))
	r.recv(8, make([]byte, 8))
	r.post(send(1, word(1)), send(2, word(2)), write(r.peer, word(3)))
	require.EqualValues(t, 7, r.next().ID, "what had been sent before counts")

	require.NoError(t, c.cmd.Process.Kill())
	start := time.Now()
	wc := r.next()
	t.Logf("noticed after %v", time.Since(start))
	require.Equal(t, driver.RetryExceeded, wc.Status)
	require.ErrorIs(t, wc.Err, driver.ErrLost)
	require.EqualValues(t, 1, wc.ID)
	for _, id := range []uint64{2, 0, 8} {
		wc = r.next()
		require.Equal(t, driver.Flushed, wc.Status)
		require.Equal(t, id, wc.ID)
	}
	select {
	case ev := <-events:
		require.Equal(t, driver.EventQPFatal, ev.Kind)
		require.Equal(t, r.qp.Num(), ev.QP)
	case <-testwatch.Context(t).Done():
		require.Fail(t, "no event came")
	}
	mem := make([]byte, 8)
	_, err := r.qp.PostSend([]driver.WorkRequest{read(r.peer, mem)})
	require.NoError(t, err)
	require.Equal(t, driver.Flushed, r.next().Status)
	r.modify(driver.StateReset, nil)
	r.modify(driver.StateInit, nil)
	require.ErrorIs(t, r.qp.Modify(context.Background(), driver.StateRTR, driver.Attr{Peer: r.met}), driver.ErrLost)
}

func sleeper(t testing.TB, in *bufio.Reader, out io.Writer) {
	r := newRank(t, nil)
	r.meet(in, out)
	r.post(send(1, word(9)))
	r.next()
	select {} // until killed
}

func TestLastMessageOfAProcessThatLeavesIsReceived(t *testing.T) {
	r, c := newRank(t, nil), startChild(t, "leaver")
	r.modify(driver.StateInit, nil)
	buf := make([]byte, 8)
	r.recv(1, buf)
	r.modify(driver.StateReset, nil)
	r.meet(c.in, c.out)
	r.recv(1, buf)
	r.recv(2, buf)
	c.ended(t)
	wc := r.next()
	require.Equal(t, driver.Success, wc.Status)
	require.EqualValues(t, 1, wc.ID)
	require.Equal(t, "farewell", string(buf))
	require.Equal(t, driver.Flushed, r.next().Status)
}

func leaver(t testing.TB, in *bufio.Reader, out io.Writer) {
	r := newRank(t, nil)
	r.meet(in, out)
	r.post(send(1, []byte("farewell")))
	require.Equal(t, driver.Success, r.next().Status)
	require.NoError(t, r.qp.Close())
}

func TestStoppedPeerIsNotDead(t *testing.T) {
	r, c := newRank(t, nil), startChild(t, "sleeper")
	buf := make([]byte, 8)
	r.meet(c.in, c.out)
	r.recv(7, buf)
	require.EqualValues(t, 7, r.next().ID)
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	r.store(dataAt, 5)
	got := make([]byte, 8)
	r.do(read(r.peer.Add(dataAt), got))
	require.Equal(t, word(5), got, "memory is served without its process")
	r.nothing()
}
