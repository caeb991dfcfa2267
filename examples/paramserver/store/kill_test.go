//go:build linux

package store_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/examples/paramserver/store"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/launcher"
)

var bodies = map[string]testjob.Body{"drill": drillUntilKilled}

const (
	killSeed = "PARAMSERVER_KILL"      // of the moment at which a worker kills itself
	killed   = "PARAMSERVER_TECHNIQUE" // a key of techniques
	drills   = 60
	most     = 5_000 // gradients of the victim: float32 holds their sum exactly
)

// drillUntilKilled has the last of the workers kill itself, by a goroutine that looks at nothing
// of the protocol. The other workers push all their gradients.
func drillUntilKilled(ctx context.Context, r *testjob.Rank) {
	seed, err := strconv.ParseUint(os.Getenv(killSeed), 10, 64)
	r.NoError(err)
	o := techniques[os.Getenv(killed)].options(2, tensors, piece)
	st, err := store.New(ctx, r.Job, o, make([]float32, 1807))
	r.NoError(err)
	result, err := run(ctx, st, func(w *store.Worker) error {
		if r.Me != r.N-1 {
			return w.Drill(ctx, drills, true)
		}
		if err := w.Drill(ctx, 1, true); err != nil { // all ranks are connected
			return err
		}
		spins := rand.New(rand.NewPCG(seed, 0)).IntN(60_000_000)
		go func() {
			for range spins { // a moment in the run of Drill, whatever the machine does
				if ctx.Err() != nil {
					return
				}
			}
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}()
		if err := w.Drill(ctx, most, true); err != nil {
			return err
		}
		return syscall.Kill(os.Getpid(), syscall.SIGKILL) // on a busy machine the goroutine may get no core before
	})
	r.NoError(err)
	if !st.Serves() {
		return
	}
	r.NoError(st.Check(true))
	for n, applied := range st.Applied() {
		if n < st.Workers()-1 {
			r.Equal(drills, applied)
		}
	}
	fmt.Printf("applied %v\n", st.Applied()) // all servers print the same
	if r.Me == 0 {
		r.Equal(1, result.Dead)
	}
}

// TestKilledWorkerLeavesNoHalfGradient kills a worker by SIGKILL at random moments, under
// --keep-going. All servers must have applied the same gradients, whole ones only.
func TestKilledWorkerLeavesNoHalfGradient(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	for i := range testwatch.Rounds(testwatch.ShortOr(8, 200)) {
		provider, name := []string{"tcp", "shm"}[i%2], []string{"fastest", "ring", "elastic read", "2 copies"}[i/2%4]
		t.Run(fmt.Sprint(provider, "/", name, "/", i), func(t *testing.T) {
			out, mark := &output{}, fmt.Sprintf("PARAMSERVER_JOB=%d-%d", os.Getpid(), i)
			steps := testwatch.Processes(testwatch.Marked(mark)) // ranks print at their end only
			result, err := launcher.Run(testwatch.Context(t, out.lines, steps), launcher.Spec{
				Programs: []launcher.Program{{Path: exe, N: 5}},
				Env: []string{testjob.Variable("drill"), killSeed + "=" + strconv.Itoa(i), killed + "=" + name,
					mark, "GRUN_PROVIDER=" + provider, "GRUN_HEAP=64MiB"},
				Stdout: out, Stderr: out, Guardian: true, KeepGoing: true,
			})
			require.NoError(t, err, "%s", out)
			require.Equal(t, 128+int(syscall.SIGKILL), result.ExitCode, "%s%s", result.Summary(), out)
			var applied []string
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, "applied ") {
					applied = append(applied, line)
				}
			}
			require.Len(t, applied, 2, "%s", out)
			require.Equal(t, applied[0], applied[1])
			t.Log(applied[0])
		})
	}
}

// output takes what the ranks print.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

var _ io.Writer = (*output)(nil)

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) lines() uint64 { return uint64(strings.Count(o.String(), "\n")) }
