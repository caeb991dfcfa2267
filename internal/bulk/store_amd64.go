//go:build !race

package bulk

import (
	"time"

	"golang.org/x/sys/cpu"
)

// wholeLines reports that the processor's string moves are quick, and write whole lines
// without fetching them. The processor claims it (enhanced REP MOVS), and a trial
// confirms it: a move takes less than twice the time of Go's copy. Some processors claim
// enhanced moves and make slow ones.
var wholeLines = cpu.X86.HasERMS && quick(Long, 2)

// loadsLines reports that string moves are no slower than Go's copy where no other core has
// the destination. They are quicker where data exceeds the first cache.
var loadsLines = wholeLines && quick(4*Long, 1)

// quick reports that a string move of n bytes takes less than so many times the time of Go's
// copy. Both trials together take about a hundred microseconds, as the process starts.
func quick(n, times int) bool {
	const tries = 8
	dst, src := make([]byte, n), make([]byte, n)
	moved, copied := time.Hour, time.Hour
	for range tries {
		began := time.Now()
		storeLines(&dst[0], &src[0], n)
		middle := time.Now()
		copy(dst, src)
		moved, copied = min(moved, middle.Sub(began)), min(copied, time.Since(middle))
	}
	return moved < time.Duration(times)*copied
}

// storeLines copies n bytes by REP MOVSQ, so it stores aligned words of 8 bytes whole. They
// must not overlap.
//
//go:noescape
func storeLines(dst, src *byte, n int)
