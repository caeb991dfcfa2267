//go:build linux

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

func TestMain(m *testing.M) {
	GuardianMain()
	testwatch.HeedSignals()
	testwatch.Main(m)
}

// runPlan runs ranks of a shell script and returns the output of all and the messages.
func runPlan(t *testing.T, plan wire.Plan, script string) (string, []wire.Message) {
	return runPlanWith(t, plan, script, func(*Agent) {})
}

// runPlanWith does so after ready, which gets the agent before its ranks start.
func runPlanWith(t *testing.T, plan wire.Plan, script string, ready func(*Agent)) (string, []wire.Message) {
	ctx, cancel := testwatch.With(t.Context())
	defer cancel()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	plan.JobID, plan.Host = uuid.NewString(), "here"
	plan.Programs = []wire.Program{{Name: "sh", Path: "sh", Args: []string{"-c", script}}}
	for r := range plan.Size {
		plan.Ranks = append(plan.Ranks, wire.Rank{Rank: r})
	}
	paths, err := Prepare(plan, nil)
	require.NoError(t, err)
	posted := make(chan wire.Message, 100)
	a, err := New(plan, paths, func(int) (Files, error) { return Files{Stdout: out}, nil }, func(m wire.Message) { posted <- m })
	require.NoError(t, err)
	ready(a)
	a.Start()
	var messages []wire.Message
	for exits := 0; exits < plan.Size; {
		select {
		case m := <-posted:
			messages = append(messages, m)
			if m.Kind == wire.KindExited || m.Kind == wire.KindNotStarted {
				exits++
			}
		case <-ctx.Done():
			require.NoError(t, ctx.Err())
		}
	}
	a.Sweep()
	a.Close()
	text, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	return string(text), messages
}

// TestSIGTERMReachesRanksThatStartLater has the signal reach the agent when no rank
// runs yet.
func TestSIGTERMReachesRanksThatStartLater(t *testing.T) {
	for _, managed := range []bool{false, true} {
		plan := wire.Plan{Size: 2, Managed: managed}
		_, messages := runPlanWith(t, plan, "exec sleep 1000", func(a *Agent) {
			require.False(t, a.heed(syscall.SIGUSR1), "no rank is to end by it")
			require.False(t, a.heed(syscall.SIGTERM))
		})
		for _, m := range messages {
			if m.Kind == wire.KindExited {
				require.Equal(t, syscall.SIGTERM, syscall.WaitStatus(m.Status).Signal())
			}
		}
	}
}

// TestSignalReachesARankThatIsStarting has a resource manager signal the agent just before the
// agent starts a rank, which the manager does not know yet.
func TestSignalReachesARankThatIsStarting(t *testing.T) {
	heeded := make(chan struct{})
	_, messages := runPlanWith(t, wire.Plan{Size: 1, Managed: true}, "exec sleep 1000", func(a *Agent) {
		files := a.files
		a.files = func(rank int) (Files, error) { // a.mu is locked
			go func() {
				defer close(heeded)
				a.heed(syscall.SIGTERM)
			}()
			require.Eventually(t, func() bool { return len(a.ending.all()) == 1 }, testwatch.Patience(), time.Millisecond)
			return files(rank)
		}
	})
	<-heeded
	for _, m := range messages {
		if m.Kind == wire.KindExited {
			require.Equal(t, syscall.SIGTERM, syscall.WaitStatus(m.Status).Signal())
		}
	}
}

// TestSignalOfAResourceManagerIsNotPassedOn has a signal reach the agent alone.
func TestSignalOfAResourceManagerIsNotPassedOn(t *testing.T) {
	const script = `trap "echo got" USR1; trap "exit 0" TERM; echo ready; while :; do sleep 0.01; done`
	for managed, want := range map[bool]string{false: "ready\ngot\n", true: "ready\n"} {
		signaled := make(chan struct{})
		text, _ := runPlanWith(t, wire.Plan{Size: 1, Managed: managed}, script, func(a *Agent) {
			files := a.files
			a.files = func(rank int) (Files, error) {
				f, err := files(rank)
				go func() {
					defer close(signaled)
					awaitText(f.Stdout.Name(), "ready")
					a.heed(syscall.SIGUSR1)
					if !managed {
						awaitText(f.Stdout.Name(), "got")
					}
					a.Signal(syscall.SIGTERM)
				}()
				return f, err
			}
		})
		<-signaled
		require.Equal(t, want, text)
	}
}

// awaitText waits until a file has a text.
func awaitText(file, want string) {
	for began := time.Now(); ; time.Sleep(time.Millisecond) { // no event tells of a line in a file
		text, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(text), want) || time.Since(began) > testwatch.Patience() {
			return // the caller reads the file again
		}
	}
}

// TestRankIsNoProcessOfAnotherLauncher has the agent run as one. The user gives the rank a variable.
func TestRankIsNoProcessOfAnotherLauncher(t *testing.T) {
	names := []string{"PMI_PORT", "HYDI_CONTROL_FD", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_RANK", "PMIX_NAMESPACE", "SLURM_PROCID", "SLURM_STEP_ID", "SLURM_STEPID", "SLURM_MPI_TYPE", "SLURM_LOCALID",
		"PMI_JOBID", "PMI_SPAWNED", "PMIX_RANK", "PMIX_SERVER_URI41", "PMIX_DSTORE_21_BASE_PATH", "PMIX_HOSTNAME",
		"SLURM_JOB_ID", "PMI_DEBUG", "PMIX_DEBUG", "PMIX_MCA_gds", "OMPI_MCA_btl"}
	for _, name := range names {
		t.Setenv(name, "inherited")
	}
	out, _ := runPlan(t, wire.Plan{Size: 1, Env: wire.Strings{"SLURM_LOCALID=user"}}, `env | grep -E "^(`+strings.Join(names, "|")+`)=" | LC_ALL=C sort`)
	require.Equal(t, "OMPI_MCA_btl=inherited\nPMIX_DEBUG=inherited\nPMIX_MCA_gds=inherited\nPMI_DEBUG=inherited\nSLURM_JOB_ID=inherited\nSLURM_LOCALID=user\n", out)
}

func TestBoundRankRunsOnItsCoreOnly(t *testing.T) {
	out, _ := runPlan(t, wire.Plan{Size: 1, Bind: int(BindCore)}, "grep Cpus_allowed_list /proc/self/status")
	var list string
	_, err := fmt.Sscanf(out, "Cpus_allowed_list: %s", &list)
	require.NoError(t, err)
	p, err := newPlacement(BindCore, "/sys/devices/system")
	require.NoError(t, err)
	set, err := parseCPUList(list)
	require.NoError(t, err)
	require.Equal(t, p.sets[0], set)
}

func TestRanksThatWouldStallAHostAreRefused(t *testing.T) {
	plan := wire.Plan{Ranks: make([]wire.Rank, 2*maxRanksPerCore)}
	require.NoError(t, fits(plan, 2))
	require.EqualError(t, fits(plan, 1), "512 ranks on 1 cores would stall it; ask for at most 256 there, or give --oversubscribe")
	plan.Crowd = true
	require.NoError(t, fits(plan, 1))
}
