//go:build linux

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/pmi"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// joinAgain tries to join its job twice, and to have a child join it. The child meets the
// descriptor of its parent, closed.
func joinAgain(ctx context.Context, job *runtime.Job) error {
	if os.Getenv("GOPGAS_TEST_CHILD") != "" {
		return errors.New("the child joined")
	}
	if err := runtime.Run(ctx, meet); !errors.Is(err, runtime.ErrJoinedBefore) {
		return fmt.Errorf("second Run: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), "GOPGAS_TEST_CHILD=1")
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "PMI_FD") && !strings.Contains(string(out), runtime.ErrJoinedBefore.Error()) {
		return fmt.Errorf("child: %w: %s", err, out)
	}
	return job.World().Barrier(ctx)
}

// managed is a job of processes that a process manager in this test starts.
type managed struct {
	*hand
	server  *pmi.Server
	serving sync.WaitGroup

	mu   sync.Mutex
	said []string // by the ranks to the manager
}

func newManaged(t *testing.T, n int) *managed {
	mark := fmt.Sprint("GOPGAS_TEST_JOB=", t.Name())
	m := &managed{hand: &hand{t, testwatch.Context(t, testwatch.Processes(testwatch.Marked(mark))), []string{"GRUN_HEAP=1M", mark, fmt.Sprint("PMI_SIZE=", n), "PMI_FD=3"}}}
	note := func(format string, args ...any) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.said = append(m.said, fmt.Sprintf(format, args...))
	}
	m.server = pmi.NewServer(make([]int, n), func(int) int { return 0 }, pmi.Hooks{
		Finalized: func(rank int) { note("rank %d finalized", rank) },
		Aborted:   func(_, _ int, message string) { note("aborted: %s", message) },
	})
	t.Cleanup(func() {
		m.server.Close()
		m.serving.Wait()
	})
	return m
}

// rank starts a process that speaks one version of PMI.
func (m *managed) rank(program string, rank, version int, vars ...string) *started {
	m.t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(m.t, err)
	mine := os.NewFile(uintptr(pair[0]), "manager")
	conn, err := net.FileConn(mine)
	require.NoError(m.t, err)
	mine.Close()
	m.serving.Go(func() { m.server.Serve(rank, conn) })
	if version == 2 {
		vars = append(vars, "PMI_JOBID=job")
	}
	return m.startWith(os.NewFile(uintptr(pair[1]), "rank"), program, append(vars, fmt.Sprint("PMI_RANK=", rank))...)
}

func (m *managed) ranks(program string, n, version int, vars ...string) (all []*started) {
	for rank := range n {
		all = append(all, m.rank(program, rank, version, vars...))
	}
	return all
}

// heard returns what the ranks told the manager, once all have ended.
func (m *managed) heard() []string {
	m.serving.Wait()
	return m.said
}

func TestProcessesOfAProcessManagerFormAJob(t *testing.T) {
	for _, version := range []int{1, 2} {
		for _, n := range []int{1, 3} {
			m := newManaged(t, n)
			all := m.ranks("meet", n, version, "GRUN_VERBOSE=1")
			m.endWell(all...)
			var want []string
			for rank, p := range all {
				require.Contains(t, p.text(), fmt.Sprintf("rank %d of %d\n", rank, n))
				require.Contains(t, p.text(), "started by PMI")
				want = append(want, fmt.Sprintf("rank %d finalized", rank))
			}
			require.ElementsMatch(t, want, m.heard())
		}
	}
}

func TestKilledRankOfAProcessManagerIsDeadForAllOthers(t *testing.T) {
	for _, victim := range []int{0, 1} {
		m := newManaged(t, 3)
		all := m.ranks("survive", 3, 2, fmt.Sprint(envVictim, "=", victim), envFall+"=1")
		m.ends(all[victim])
		for rank, p := range all {
			if rank != victim {
				m.fails(p, fmt.Sprintf("rank %d is dead\n", victim), fmt.Sprint("launcher lost: ", victim == 0))
			}
		}
		require.NotContains(t, m.heard(), fmt.Sprintf("rank %d finalized", victim))
	}
}

// TestRankZeroAbortsRanksThatDoNotLeave has the manager do nothing about the abort, as the
// test sees the rest then.
func TestRankZeroAbortsRanksThatDoNotLeave(t *testing.T) {
	t.Parallel() // it waits most of its time
	m := newManaged(t, 3)
	all := m.ranks("stay", 3, 2, "GRUN_PEER_TIMEOUT=2s")
	m.ends(all[0])
	require.Contains(t, all[0].text(), "(ranks 1-2 did not leave the job within 2s after rank 0, which hosts the rendezvous): the process manager ends the job")
	for _, p := range all[1:] {
		require.NoError(t, p.cmd.Process.Kill())
		m.ends(p)
	}
	require.Len(t, m.heard(), 1)
	require.Contains(t, m.said[0], "aborted: rank 1: rank is unreachable")
}

func TestProcessOfAProcessManagerJoinsOnce(t *testing.T) {
	for _, version := range []int{1, 2} {
		m := newManaged(t, 2)
		m.endWell(m.ranks("again", 2, version)...)
	}
}

func TestStartOfAProcessManagersJobHasABound(t *testing.T) {
	t.Parallel() // it waits most of its time
	m := newManaged(t, 2)
	m.fails(m.rank("meet", 0, 1, "GRUN_START_TIMEOUT=2s"), "job did not start: some ranks did not join within 2s: start all ranks")
}

func TestRanksOfAProcessManagerUseTheSecretAndAddressOfTheirUser(t *testing.T) {
	by := newHand(t, 2, "127.0.0.1")
	m := newManaged(t, 2)
	addr := by.vars[0]
	all := m.ranks("meet", 2, 1, addr, by.vars[2], "GRUN_VERBOSE=1")
	m.endWell(all...)
	require.Contains(t, all[1].text(), "joined at "+strings.TrimPrefix(addr, "GRUN_ADDR="))
	strange := newManaged(t, 2)
	first := strange.rank("meet", 0, 1, by.vars[2])
	strange.fails(strange.rank("meet", 1, 1, "GRUN_SECRET="+strings.Repeat("ab", 32)), "job did not start: bootstrap handshake failed")
	require.NoError(t, first.cmd.Process.Kill())
	strange.ends(first)
}

func TestRankZeroThatCannotListenEndsAllRanksOfAProcessManager(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	addr := taken.Addr().String()
	for _, version := range []int{1, 2} {
		m := newManaged(t, 3)
		all := m.ranks("meet", 3, version, "GRUN_ADDR="+addr, "GRUN_START_TIMEOUT=1h")
		m.fails(all[0], "job did not start: host the rendezvous at "+addr+": another process listens there")
		for _, p := range all[1:] {
			m.fails(p, "job did not start: rank 0 failed: host the rendezvous at "+addr+": another process listens there")
		}
		require.ElementsMatch(t, []string{"rank 0 finalized", "rank 1 finalized", "rank 2 finalized"}, m.heard())
	}
}

func TestDescriptorThatIsNoConnectionIsAnEnvError(t *testing.T) {
	h := newManaged(t, 2)
	h.fails(h.start("meet", "PMI_RANK=0"), `environment variable PMI_FD="3": no connection`)
	h.fails(h.start("meet", "PMI_RANK=x"), `environment variable PMI_RANK="x"`)
	h.fails(h.start("meet", "PMI_RANK=2"), `environment variable PMI_RANK="2"`)
}
