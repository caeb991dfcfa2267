//go:build linux

package main

import (
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeLines are the words of a probe in shared memory, each in a line of its own.
type probeLines struct {
	_     [128]byte
	there atomic.Uint64 // written by the probe; ended ends the echo
	_     [120]byte
	back  atomic.Uint64 // written by the echo
	_     [120]byte
}

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

// trip sends a line there and back; false if the deadline passed.
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

func (l *probeLines) stop() { l.there.Store(ended) }

// begin readies the words for a measurement.
func (l *probeLines) begin() {
	l.back.Store(0)
	l.there.Store(0)
}

// echo sends each line back until the probe stops or the deadline passes.
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
