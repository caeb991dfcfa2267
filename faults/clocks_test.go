//go:build linux

package faults

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// sinceBoot runs a rank in a time namespace, so that its host has been up for a day, two or three more.
const sinceBoot = `exec unshare --time --monotonic $((GRUN_RANK * 86400)) --boottime $((GRUN_RANK * 86400)) --fork --kill-child "$0" "$@"`

// skew is a variable with the seconds by which the calendar of a rank is ahead.
const skew = "GOPGAS_FAULTS_SKEW"

// TestJobRunsThoughClocksDiffer runs all operations, encrypted, on hosts whose clocks differ: those
// that measure times since their boot, by days, and with GOPGAS_SOAK=1 their calendars, too, by years.
func TestJobRunsThoughClocksDiffer(t *testing.T) {
	need(t)
	t.Parallel()
	prefix := []string{"/bin/sh", "-c", sinceBoot}
	if out, err := exec.Command("unshare", "--time", "--fork", "true").CombinedOutput(); err != nil {
		t.Logf("no time namespaces here: %v: %s", err, out)
		prefix = nil
	}
	path := ""
	if testjob.Soak() {
		path = otherCalendar(t)
	} else if prefix == nil {
		t.Skip("only calendars can differ here: set GOPGAS_SOAK=1")
	}
	bed, lan := hosts.Star(t, 1, 4)
	on := bed.Hosts()
	const years = "315360000"
	j := start(t, spec{name: "all", path: path, prefix: prefix, place: on[:3], meet: on[3], lan: lan, family: hosts.IPv4,
		env: []string{"GRUN_TLS=1", "GRUN_PEER_TIMEOUT=3s"}, rankIn: map[int][]string{1: {skew + "=" + years}, 2: {skew + "=-" + years}}})
	j.ready()
	for _, r := range j.ranks {
		for number := 0; number < 10; {
			number = j.await(r, "round").Rank
		}
	}
	j.succeeds()
	j.leavesNothing()
}

// aheadBy is added to package time.
const aheadBy = `
func ahead() (seconds int64) {
	text, _ := syscall.Getenv("` + skew + `")
	digits := text
	if text != "" && text[0] == '-' {
		digits = text[1:]
	}
	for _, c := range digits {
		seconds = seconds*10 + int64(c-'0')
	}
	if digits != text {
		seconds = -seconds
	}
	return seconds
}
`

// otherCalendar builds this test with a package time whose calendar is ahead by skew.
func otherCalendar(t *testing.T) (path string) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	overlay := edited(t, filepath.Join(strings.TrimSpace(string(root)), "src/time/time.go"), func(text string) string {
		now := regexp.MustCompile(`(?s)(\nfunc Now\(\) Time \{.*?sec, nsec, mono := \w+\(\)\n)`)
		require.Len(t, now.FindAllString(text, -1), 1)
		text = strings.Replace(text, "import (\n", "import (\n\t\"syscall\"\n", 1)
		return now.ReplaceAllString(text, "${1}\tsec += ahead()\n") + aheadBy
	})
	path = filepath.Join(t.TempDir(), "program")
	out, err := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", path, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// edited returns a file for -overlay of the go command, by which it sees a file with another text.
func edited(t testing.TB, file string, edit func(text string) string) (overlay string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	other := edit(string(text))
	require.NotEqual(t, string(text), other)
	dir := t.TempDir()
	overlay = filepath.Join(dir, "overlay")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{file: filepath.Join(dir, "other.go")}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.go"), []byte(other), 0o600))
	require.NoError(t, os.WriteFile(overlay, list, 0o600))
	return overlay
}
