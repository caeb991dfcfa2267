package progress

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTellPrintsNothingInShortRunsAndNowAndThenInLongOnes(t *testing.T) {
	var out strings.Builder
	l := New(&out, "prog", true)
	clock := time.Now()
	l.now = func() time.Time { return clock }
	l.Tell("step %d", 1)
	require.Empty(t, out.String(), "not at once")
	clock = clock.Add(after + time.Millisecond)
	l.Tell("step %d", 2)
	l.Tell("step %d", 3)
	require.Equal(t, "prog: step 2\n", out.String(), "not again at once")
	clock = clock.Add(every + time.Millisecond)
	l.Tell("step %d", 4)
	require.Equal(t, "prog: step 2\nprog: step 4\n", out.String())
}

func TestSilentLinePrintsNothing(t *testing.T) {
	var out strings.Builder
	l := New(&out, "prog", false)
	l.now = func() time.Time { return time.Now().Add(time.Hour) }
	l.Tell("step %d", 1)
	require.Empty(t, out.String())
}
