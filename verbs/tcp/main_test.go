//go:build linux

package tcp

import (
	"fmt"
	"os"
	"testing"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// TestMain fails if the tests leave goroutines or descriptors behind.
func TestMain(m *testing.M) {
	testwatch.Overlap()
	before := descriptors()
	code := testwatch.Judge(m.Run())
	if after := descriptors(); code == 0 && after > before {
		fmt.Fprintf(os.Stderr, "%d descriptors are open, %d were before the tests\n", after, before)
		code = 1
	}
	os.Exit(code)
}

// descriptors counts sockets and epolls; the number of other descriptors may change.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && len(target) > 7 && target[:7] == "socket:" {
			n++
		}
	}
	return n
}
