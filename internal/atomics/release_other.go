//go:build !amd64 || race

package atomics

import "sync/atomic"

// StoreRelease stores a word behind all loads and stores that come before it.
func StoreRelease(p *atomic.Uint64, v uint64) { p.Store(v) }
