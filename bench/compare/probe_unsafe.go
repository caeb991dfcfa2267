//go:build linux

package main

import (
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeLines are the words by which a probe measures how far two cores are apart, each in a line of its own. The
// probe of this program sends a number there; the process of the echo, on the other core, sends it back. Both map
// the words.
type probeLines struct {
	_     [128]byte
	there atomic.Uint64 // written by the probe; ended ends the echo
	_     [120]byte
	back  atomic.Uint64 // written by the echo
	_     [120]byte
}

// ended is the number at which the echo goes back to sleep.
const ended = ^uint64(0)

// mapLines maps the words of a file. With size, it gives the file their length first.
func mapLines(f *os.File, size bool) (*probeLines, error) {
	if size {
		if err := f.Truncate(int64(unsafe.Sizeof(probeLines{}))); err != nil {
			return nil, err
		}
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(probeLines{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*probeLines)(unsafe.Pointer(unsafe.SliceData(mem))), nil
}

// polls is the number of looks between two looks at the clock.
const polls = 4096

// trip sends a number there and back. It returns false if the deadline passed. The probe calls it.
func (l *probeLines) trip(deadline time.Time) bool {
	n := l.back.Load() + 1
	l.there.Store(n)
	for i := 1; l.back.Load() != n; i++ {
		if i%polls == 0 && time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// stop has the echo go back to sleep. The probe calls it.
func (l *probeLines) stop() { l.there.Store(ended) }

// begin readies the words for a measurement. The echo calls it before it tells the probe that it is awake.
func (l *probeLines) begin() {
	l.back.Store(0)
	l.there.Store(0)
}

// echo sends each number back until the probe stops or the deadline passes.
func (l *probeLines) echo(deadline time.Time) {
	for i, seen := 1, uint64(0); ; i++ {
		switch n := l.there.Load(); n {
		case ended:
			return
		case seen:
			if i%polls == 0 && time.Now().After(deadline) {
				return
			}
		default:
			seen = n
			l.back.Store(n)
		}
	}
}
