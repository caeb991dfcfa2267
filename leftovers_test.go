package gopgas_test

import (
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLeftoversDoesNotReportItself starts the script in the environment of a job. Files of other jobs
// may be there, for which the script waits no second here.
func TestLeftoversDoesNotReportItself(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("the script looks in /proc")
	}
	marker := "GOPGAS_LEFTOVERS_TEST=" + strconv.Itoa(os.Getpid())
	cmd := exec.CommandContext(t.Context(), "scripts/leftovers.sh", marker)
	cmd.Env = append(os.Environ(), "GRUN_JOB_ID=leftovers", "SECONDS=30", marker)
	out, _ := cmd.CombinedOutput()
	require.Regexp(t, `left behind\n$`, string(out))
	require.NotContains(t, string(out), "process ")
}
