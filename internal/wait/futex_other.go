//go:build !linux

package wait

import "sync/atomic"

// newFutex returns nil, since no two processes share a bell here: bells that they share lie in sealed memfds,
// which only Linux has. The goroutines of this process sleep on the bell's channel.
func newFutex(*atomic.Uint32) *futex { return nil }
