//go:build race

package testjob

// Race tells whether the race detector is on.
const Race = true
