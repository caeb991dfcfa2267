//go:build race

package testwatch

// Race tells whether the race detector is on.
const Race = true
