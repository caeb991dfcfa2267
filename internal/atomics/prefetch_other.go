//go:build !amd64

package atomics

func prefetchWrite(*byte) {}
