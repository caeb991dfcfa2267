//go:build linux

package launcher

import (
	"os"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestRunLeavesNoProcessBehind(t *testing.T) {
	for name, script := range map[string]string{
		"grandchild that holds stdout": `sleep 1000 & echo started`,
		"child of its own session":     `setsid sleep 1000 >/dev/null 2>&1 & echo started`,
		"double fork":                  `(setsid sh -c 'sleep 1000 & sleep 1000' >/dev/null 2>&1 &) ; echo started`,
		"child that ignores signals":   `(trap '' INT TERM HUP; sleep 1000) & echo started`,
		"stopped child":                `sleep 1000 & kill -STOP $!; echo started`,
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t, Spec{Programs: sh(2, script)})
			require.NoError(t, o.err)
			require.Equal(t, 0, o.ExitCode)
			require.Equal(t, []string{"started", "started"}, o.stdout.lines())
		})
	}
}

func TestManyQuickJobsLeakNothing(t *testing.T) {
	once := func() {
		o := run(t, Spec{Programs: sh(2, "exit 0")})
		require.NoError(t, o.err)
		require.Equal(t, 0, o.ExitCode)
	}
	once()
	before, goroutines := descriptors(t), goruntime.NumGoroutine()
	for range testwatch.ShortOr(30, 100) {
		once()
	}
	require.Eventually(t, func() bool {
		return descriptors(t) <= before && goruntime.NumGoroutine() <= goroutines+5
	}, testwatch.Patience(), time.Millisecond, "the last job's goroutines may be ending")
}

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

func TestManyQuickGopgasJobsEndWell(t *testing.T) {
	for range testwatch.ShortOr(15, 100) {
		o := run(t, Spec{Programs: []Program{ranks(2, "leave")}})
		require.NoError(t, o.err)
		require.Equal(t, 0, o.ExitCode, o.Summary())
	}
}
