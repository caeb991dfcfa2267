package chaos

import (
	"flag"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
)

var (
	firstSeed = flag.Uint64("seed", 1, "seed of the first trial; trial i has seed + i")
	cancels   = flag.Int("cancels", fewTrials(24), "trials of cancellations")
	kills     = flag.Int("kills", 8, "trials of kills")
)

// fewTrials returns n, or a third of n under the race detector.
func fewTrials(n int) int {
	if testwatch.Race {
		return n / 3
	}
	return n
}

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]testjob.Body{"survive": survive})
}
