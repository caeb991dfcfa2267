package testwatch

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, and exits. It fails if they leave goroutines behind. A
// TestMain calls it.
func Main(m *testing.M) { os.Exit(Judge(m.Run())) }

// Judge returns the exit code of tests that ended with code: 1 where they passed, and left
// goroutines behind.
func Judge(code int) int {
	if code != 0 {
		return code
	}
	if err := Leaks(); err != nil {
		fmt.Fprintln(os.Stderr, "leak:", err)
		return 1
	}
	return 0
}

// Leaks returns an error that shows the goroutines that tests have left. It gives goroutines
// that are about to end the time to do so, Patience at most: goleak alone gives half a second.
func Leaks() (err error) {
	for began := time.Now(); ; {
		if err = goleak.Find(); err == nil || time.Since(began) > Patience() {
			return err
		}
	}
}
