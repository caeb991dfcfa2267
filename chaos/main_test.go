package chaos

import (
	"flag"
	"fmt"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
)

var (
	firstSeed = flag.Uint64("seed", 1, "seed of the first trial; trial i has seed + i")
	cancels   = flag.Int("cancels", fewTrials(24), "trials of cancellations")
	kills     = flag.Int("kills", 8, "trials of kills")
	encrypted = flag.Bool("tls", false, "all trials over tcp, encrypted; without it, every third over tcp")
)

// again returns the flags that repeat a trial of a seed.
func again(seed uint64) string {
	if *encrypted {
		return fmt.Sprintf("-tls -seed %d", seed)
	}
	return fmt.Sprintf("-seed %d", seed)
}

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
