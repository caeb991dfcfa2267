//go:build linux

package memory_test

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/memory"
)

// childEnv makes a copy of the test binary do one thing under limits that the
// test itself could not survive.
const childEnv = "GOPGAS_MEMORY_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(limitedChild())
	}
	startNetpoller()
	before := descriptors()
	code := m.Run()
	if after := descriptors(); code == 0 && after > before {
		fmt.Fprintf(os.Stderr, "%d descriptors before the tests, %d after\n", before, after)
		code = 1
	}
	os.Exit(code)
}

// startNetpoller has the Go runtime open the descriptors that it keeps for good.
func startNetpoller() {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	_ = r.Close()
	_ = w.Close()
}

func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(entries)
}

// limitedChild asks for more address space than it may have and prints the error.
func limitedChild() int {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &lim); err != nil {
		return 2
	}
	lim.Cur = 4 << 30
	if err := unix.Setrlimit(unix.RLIMIT_AS, &lim); err != nil {
		return 2
	}
	_, err := memory.NewMemfd("limited", 8<<30)
	fmt.Println(err)
	return 0
}
