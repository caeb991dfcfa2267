//go:build race

package testwatch

// Race reports whether the race detector is on.
const Race = true
