//go:build linux

package wait

import (
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// peerEnv makes the test binary play the peer process of these tests.
const peerEnv = "GOPGAS_WAIT_TEST_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) != "" {
		if err := takeTurns(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testwatch.Main(m)
}

// table is the memory that the two processes share: a bell and a turn for each,
// on cache lines of their own.
type table struct {
	bells [2]*Bell
	turn  *atomic.Uint32 // the seq word of a third, otherwise unused bell
}

func openTable(fd int) (table, error) {
	mem, err := unix.Mmap(fd, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return table{}, fmt.Errorf("mapping the shared page: %w", err)
	}
	return table{
		bells: [2]*Bell{NewShared(mem[0:], fd, 0), NewShared(mem[64:], fd, 64)},
		turn:  &wordsAt(mem[128:]).seq,
	}, nil
}

// processRounds is the number of times that processes pass the turn. Where both need one
// core with a third, each time takes milliseconds.
const processRounds = 10_000

// play takes every second turn, starting with the side's own number.
func (tb table) play(side, turns uint32) error {
	guard := newGuard()
	defer guard.stop()
	for n := side; n < turns; n += 2 {
		if err := tb.bells[side].Wait(guard, func() bool { return tb.turn.Load() == n }); err != nil {
			return fmt.Errorf("side %d, turn %d of %d: %w", side, n, turns, err)
		}
		guard.progress(uint64(n - side))
		tb.turn.Store(n + 1)
		tb.bells[1-side].Ring()
	}
	return nil
}

// takeTurns is the main program of the peer process.
func takeTurns() error {
	tb, err := openTable(3)
	if err != nil {
		return err
	}
	return tb.play(1, 2*processRounds)
}

func TestNoWakeupIsLostBetweenProcesses(t *testing.T) {
	fd, err := unix.MemfdCreate("bell", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	page := os.NewFile(uintptr(fd), "bell")
	defer page.Close()
	require.NoError(t, page.Truncate(int64(unix.Getpagesize())))
	tb, err := openTable(fd)
	require.NoError(t, err)

	peer := exec.Command("/proc/self/exe")
	peer.Env = append(os.Environ(), peerEnv+"=1")
	peer.ExtraFiles = []*os.File{page}
	peer.Stderr = os.Stderr
	peer.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, peer.Start())

	// The peer takes some milliseconds to start: the first wait is a long one.
	played := tb.play(0, 2*processRounds)
	if played != nil {
		require.NoError(t, peer.Process.Kill())
	}
	ended := peer.Wait()
	require.NoError(t, played)
	require.NoError(t, ended)
	require.Equal(t, uint32(2*processRounds), tb.turn.Load())
	t.Logf("slept %d times in %d rounds", tb.bells[0].Parks(), processRounds)
}
