//go:build linux

package faults

import (
	"os"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/tools/hosts"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(envProgram); name != "" {
		os.Exit(runProgram(name))
	}
	testjob.Main(m, nil)
}

// need skips a test unless hosts are asked for: such tests take minutes.
func need(t testing.TB) {
	t.Helper()
	if os.Getenv(hosts.EnvRequire) != "1" {
		t.Skipf("jobs on several hosts take minutes and need root: run make hosts, or set %s=1", hosts.EnvRequire)
	}
}
