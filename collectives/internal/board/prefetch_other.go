//go:build !amd64

package board

func prefetchWrite(*line) {}
