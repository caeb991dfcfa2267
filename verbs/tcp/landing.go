//go:build linux

package tcp

import (
	"context"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A landing is a region with memory that its owner replaces. Each memory gets addresses
// behind those of the memory before. So the device tells a late write from one that no
// peer may make.
//
//	addr   4096 ......... | ......... | .........
//	       thrown away     written     refused
type landing struct{ region }

// NewLanding makes a landing that is shut.
func (d *device) NewLanding(context.Context) (driver.Landing, error) {
	l := &landing{region{dev: d, access: driver.LocalWrite | driver.RemoteWrite, addr: addrBase, key: newKey(), landing: true}}
	return l, d.enter(&l.region)
}

// Open makes mem the memory of the landing and returns its address.
func (l *landing) Open(mem []byte) driver.RemoteAddr {
	l.dev.regionMu.Lock()
	defer l.dev.regionMu.Unlock()
	l.pass()
	l.mem = mem
	return driver.RemoteAddr{Addr: l.addr, RKey: l.key}
}

// pass moves the landing's addresses past those of its memory.
func (l *landing) pass() {
	l.addr += uint64(len(l.mem))
	l.mem = nil
}

// Shut takes the memory back.
func (l *landing) Shut() {
	l.dev.regionMu.Lock()
	open := l.mem != nil
	l.pass()
	l.dev.regionMu.Unlock()
	if open {
		l.dev.forget(&l.region)
	}
}

// late reports whether f writes to memory that a landing had before.
func (d *device) late(f *frame) bool {
	d.regionMu.RLock()
	defer d.regionMu.RUnlock()
	r := d.regions[f.key]
	return r != nil && r.landing && f.addr < r.addr
}
