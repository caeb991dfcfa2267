//go:build race

package vector

// race selects the plain form: the race detector must see reads and writes.
const race = true
