package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

func TestMain(m *testing.M) {
	GuardianMain()
	testwatch.HeedSignals()
	goleak.VerifyTestMain(m)
}

// runPlan runs ranks of a shell script and returns the output of all and the messages.
func runPlan(t *testing.T, plan wire.Plan, script string) (string, []wire.Message) {
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
