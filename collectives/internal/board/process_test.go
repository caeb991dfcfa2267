//go:build linux

package board

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
)

// memberEnv makes the test binary one member of a team of processes: its rank,
// the team's size and the program's name.
const memberEnv = "GOPGAS_BOARD_TEST_MEMBER"

// programs are the programs of teams of processes.
var programs = map[string]func(p *process) error{
	"random":  func(p *process) error { return p.random() },
	"measure": func(p *process) error { return p.measure() },
}

func TestMain(m *testing.M) {
	if who := os.Getenv(memberEnv); who != "" {
		if err := member(who); err != nil {
			fmt.Fprintln(os.Stderr, who, err)
			os.Exit(1)
		}
		return
	}
	testwatch.Main(m)
}

// A process is a member of such a team. All share one file:
//
//	bells, a line each | boards | arenas
type process struct {
	*Board
	bell  *wait.Bell
	arena []byte
}

const processArena = 1 << 26

func processSizes(n int) (boards, arenas, all int) {
	boards = 64 * HeadSize // has a line for the bell of each
	arenas = boards + n*(HeadSize+BuffersSize(n))
	return boards, arenas, arenas + n*processArena
}

func member(who string) error {
	fields := strings.Fields(who)
	rank, _ := strconv.Atoi(fields[0])
	n, _ := strconv.Atoi(fields[1])
	p, err := openProcess(3, rank, n)
	if err != nil {
		return err
	}
	return programs[fields[2]](p)
}

func openProcess(fd, rank, n int) (*process, error) {
	boards, arenas, all := processSizes(n)
	mem, err := unix.Mmap(fd, 0, all, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	arena := func(m int) []byte { return mem[arenas+m*processArena:][:processArena] }
	c := Config{Rank: rank, Size: n, View: func(m int, region, offset uint64, n int) []byte {
		if region != arenaRegion || offset > processArena || uint64(n) > processArena-offset {
			return nil
		}
		return arena(m)[offset:][:n:n]
	}}
	p := &process{arena: arena(rank), bell: wait.NewShared(mem[rank*lineSize:], fd, int64(rank*lineSize))}
	c.Mem = mem[boards+rank*(HeadSize+BuffersSize(n)):][:(HeadSize + BuffersSize(n))]
	c.Find = func(_ context.Context, members []int, found Found) (err error) {
		for _, m := range members {
			err = errors.Join(err, found(m, mem[boards+m*(HeadSize+BuffersSize(n)):][:(HeadSize+BuffersSize(n))], wait.NewShared(mem[m*lineSize:], -1, 0)))
		}
		return err
	}
	c.Await = waitOn(p.bell)
	p.Board, err = New(c)
	return p, err
}

// runProcesses has n processes run a program and returns their output. Each has a
// watchdog of its own.
func runProcesses(ctx context.Context, t testing.TB, n int, program string, env ...string) string {
	t.Helper()
	fd, err := unix.MemfdCreate("team", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	file := os.NewFile(uintptr(fd), "team")
	defer file.Close()
	_, _, all := processSizes(n)
	require.NoError(t, file.Truncate(int64(all)))
	var out strings.Builder
	var members []*exec.Cmd
	for rank := range n {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(append(os.Environ(), env...), fmt.Sprintf("%s=%d %d %s", memberEnv, rank, n, program))
		cmd.ExtraFiles = []*os.File{file}
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.Stderr = os.Stderr
		if rank == 0 {
			cmd.Stdout = &out
		}
		require.NoError(t, cmd.Start())
		members = append(members, cmd)
	}
	for _, cmd := range members {
		require.NoError(t, cmd.Wait())
	}
	return out.String()
}

// random makes calls like those of the tests in one process.
func (p *process) random() error {
	r := &rig{boards: make([]*Board, p.n), arenas: make([][]byte, p.n)}
	r.arenas[p.rank] = p.arena
	ctx, stop := testwatch.With(context.Background(), r.made.Load)
	defer stop()
	for i, c := range randomCalls(uint64(p.n), p.n, testwatch.Rounds(600), 500) {
		if err := p.Board.one(ctx, r, i, &c); err != nil {
			return err
		}
	}
	return nil
}

func TestCollectivesAmongProcessesAgreeWithASequentialProgram(t *testing.T) {
	for _, n := range []int{2, 5} {
		t.Run(strconv.Itoa(n), func(t *testing.T) { runProcesses(t.Context(), t, n, "random") })
	}
}
