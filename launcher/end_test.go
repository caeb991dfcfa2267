//go:build linux

package launcher

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

func TestRanksThatIgnoreAForwardedSignalAreKilled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		signals := make(chan os.Signal, 1)
		out := &onLine{want: "ready", n: 2, then: func() { signals <- sig }}
		o := run(t, Spec{
			Programs: sh(2, `trap "" INT TERM; echo ready; while :; do sleep 1; done`),
			Signals:  signals, Stdout: out, KillWait: 50 * time.Millisecond,
		})
		require.NoError(t, o.err)
		require.Equal(t, 128+int(sig), o.ExitCode)
		require.Equal(t, []int{0, 1}, o.Killed)
	}
}

func TestTimeToKillCountsFromTheFirstSignal(t *testing.T) {
	j := &job{spec: Spec{KillWait: time.Hour}}
	j.timer = newAlarm()
	defer j.timer.off()
	j.forward(syscall.SIGINT)
	require.Equal(t, terminating, j.phase)
	kill := j.timer.at
	require.False(t, kill.IsZero())
	j.end() // a timeout, for instance
	require.Equal(t, kill, j.timer.at)
	j.escalate()
	require.Equal(t, killing, j.phase)
}

func TestRanksOfAJobThatDoesNotStartGetSIGTERM(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte{0x7f, 'E', 'L', 'F', 0}, 0o755))
	spec := Spec{Programs: []Program{{Path: "sleep", Args: []string{"100"}, N: 2}, {Path: garbage, N: 1}}, KillWait: time.Minute}
	j, err := newJob(spec)
	require.NoError(t, err)
	result, err := j.supervise(context.Background())
	require.NoError(t, j.release())
	var start *StartError
	require.ErrorAs(t, err, &start)
	require.Equal(t, ExitNotExecutable, result.ExitCode)
	require.True(t, j.ranks[2].absent)
	for _, p := range j.ranks[:2] {
		require.Equal(t, syscall.SIGTERM, p.status.Signal())
	}
	require.Empty(t, result.Killed)
	require.Empty(t, result.Failures)
}

func TestRanksAreNamedInShort(t *testing.T) {
	for want, ranks := range map[string][]int{
		"rank 3": {3}, "ranks 0-2": {2, 0, 1}, "ranks 0-2,5,7-8": {8, 7, 5, 2, 1, 0}, "ranks 1,3": {1, 3},
	} {
		require.Equal(t, want, bootstrap.Ranks(ranks))
	}
}
