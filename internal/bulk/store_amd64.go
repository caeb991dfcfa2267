//go:build !race

package bulk

import (
	"time"

	"golang.org/x/sys/cpu"
)

// wholeLines reports that the processor's string moves are quick, and write whole lines
// without fetching them. The processor claims it (enhanced REP MOVS), and a trial
// confirms it.
var wholeLines = cpu.X86.HasERMS && quick()

// quick reports that a string move takes less than twice the time of Go's copy. Some
// processors claim enhanced moves and make slow ones. The trial takes a few microseconds.
func quick() bool {
	const tries = 8
	dst, src := make([]byte, Long), make([]byte, Long)
	moved, copied := time.Hour, time.Hour
	for range tries {
		began := time.Now()
		storeLines(&dst[0], &src[0], Long)
		middle := time.Now()
		copy(dst, src)
		moved, copied = min(moved, middle.Sub(began)), min(copied, time.Since(middle))
	}
	return moved < 2*copied
}

// storeLines copies n bytes by REP MOVSQ, so it stores aligned words of 8 bytes whole. They
// must not overlap.
//
//go:noescape
func storeLines(dst, src *byte, n int)
