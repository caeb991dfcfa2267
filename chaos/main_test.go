package chaos

import (
	"flag"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
)

var (
	firstSeed = flag.Uint64("seed", 1, "seed of the first trial; trial i has seed + i")
	cancels   = flag.Int("cancels", 24, "trials of cancellations")
	kills     = flag.Int("kills", 8, "trials of kills")
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]testjob.Body{"survive": survive})
}
