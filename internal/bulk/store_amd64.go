//go:build !race

package bulk

import "golang.org/x/sys/cpu"

// wholeLines reports that the processor's string moves are quick (enhanced REP MOVSB), and
// write whole lines without fetching them.
var wholeLines = cpu.X86.HasERMS

// storeLines copies n bytes by REP MOVSB. They may overlap.
//
//go:noescape
func storeLines(dst, src *byte, n int)
