//go:build !race

package atomics

import "sync/atomic"

// StoreRelease stores a word behind all loads and stores that come before it. Loads that
// come after it may overtake it, which they do not with Store: it costs no locked
// instruction.
//
//go:noescape
func StoreRelease(p *atomic.Uint64, v uint64)
