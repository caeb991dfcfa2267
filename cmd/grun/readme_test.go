//go:build linux

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommandsOfTheReadmeStartAJobHere runs the README's block about one machine. The commands
// doctor and tune have tests of their own.
func TestCommandsOfTheReadmeStartAJobHere(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	block := regexp.MustCompile(`(?s)    go build -o bin/ ./cmd/grun.*?    grun -h `).FindString(string(readme))
	lines := regexp.MustCompile(`(?m)^    grun (-n .*)$`).FindAllStringSubmatch(block, -1)
	require.GreaterOrEqual(t, len(lines), 10)
	dir, hello := t.TempDir(), built(t, "hello")
	replacer := strings.NewReplacer("./examples/hello", "../../examples/hello", "./bench", "../../bench -time 2ms", "./prog -flags of the program", hello,
		"./prog", hello, "./server", hello, "./worker", hello, "--output logs", "--output "+dir+"/logs", "--timeout 1m", "--timeout 10m") // on a loaded machine
	for _, m := range lines {
		command, _, _ := strings.Cut(m[1], "#")
		if strings.Contains(command, "./bench") && testing.Short() {
			continue // measures
		}
		code, _, stderr := grun(t, strings.Fields(replacer.Replace(command))...)
		require.Equal(t, 0, code, "%s: %s", command, stderr)
	}
	logs, err := filepath.Glob(dir + "/logs/rank-*.log")
	require.NoError(t, err)
	require.Len(t, logs, 4)
}
