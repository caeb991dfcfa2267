//go:build linux

package shm

import (
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// Control returns the memory that a hostile peer could map.
func Control(c driver.Context) []byte { return c.(*Context).control.Bytes() }

// Mapped returns of how many peers c maps the control memfd, and of how many neighbors the memory of the bell.
func Mapped(c driver.Context) (peers, homes int) {
	of := c.(*Context)
	of.mu.Lock()
	defer of.mu.Unlock()
	return len(of.peers), len(of.homes)
}

// Committed returns the bytes of the control memfd that occupy memory.
func Committed(c driver.Context) (int64, error) {
	var st unix.Stat_t
	err := unix.Fstat(c.(*Context).control.FD(), &st)
	return st.Blocks * 512, err
}

// SetBusy pretends that the QP is within a request, or not.
func SetBusy(q driver.QP, value uint64) { q.(*QP).own.busy.Store(value) }

// SetPatience bounds the waits of c for requests that no call of c has waited for yet.
func SetPatience(c driver.Context, d time.Duration) {
	u := &c.(*Context).unfinished
	u.mu.Lock()
	defer u.mu.Unlock()
	u.patience = d
}

// These are the parts of a control memfd that peers read.
const (
	DoorbellWords = iota
	TableWords
	ConnectionWords
	CounterWords
	LengthWords
	RingWords
	Parts
)

// SomeWord picks a word in a part of a control memfd with eight registrations
// and rings of 4 KiB. The offsets are those of header and block.
func SomeWord(rng *rand.Rand, part int) uint64 {
	first := uint64(blocksOffset(Config{MaxQPs: 2, MaxMRs: 8, RingBytes: 4096}))
	one := func(offsets ...uint64) uint64 { return first + offsets[rng.IntN(len(offsets))] }
	switch part {
	case DoorbellWords:
		return 2*line + uint64(rng.IntN(64+8))*8
	case TableWords:
		return tableOffset + uint64(rng.IntN(8*8))*8
	case ConnectionWords:
		return one(0, 2*8)
	case CounterWords:
		return one(line, 2*line, 2*line+8, 3*line)
	case LengthWords:
		return first + lengthsStart + uint64(rng.IntN(16))*8
	}
	return first + ringStart + uint64(rng.IntN(4096/8))*8
}
