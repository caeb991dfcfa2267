//go:build !amd64

package atomics

func prefetch(*byte) {}

func prefetchWrite(*byte) {}
