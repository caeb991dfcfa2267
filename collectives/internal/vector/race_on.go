//go:build race

package vector

// race: what reads and writes memory must be visible to the race detector.
const race = true
