//go:build linux

package shm

import (
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A ring holds the messages that one QP sends to its peer. The sender alone
// writes it; the receiver publishes its progress in its own block. A message is
// one or more records, each starting at a line and contiguous:
//
//	 0  8  bits 0-7 kind, bit 8 last record of its message, bits 32-63 bytes that follow
//	 8  8  recordNotice: bits 0-31 bytes written, bits 32-63 immediate value
//	       recordResponse: status
//	16     data
type ring struct {
	mem   []byte
	block uint64 // offset in mem
	size  uint64 // bytes
	lines uint64 // ever put; used by the sender only
}

const recordHeader = 16

// reserve returns the lines that a response takes at most, in two records where the ring wraps.
func (r *ring) reserve() uint64 { return linesOf(r.size/4) + 2 }

// A recordKind says what a record of the ring carries.
type recordKind uint8

const (
	recordData     recordKind = iota + 1 // a piece of a SEND
	recordNotice                         // a WRITE_WITH_IMM was applied
	recordTooBig                         // a SEND did not fit the receive that it consumes
	recordRequest                        // a request to the peer's CPU, see request.go
	recordResponse                       // a piece of the response to one
	recordPad                            // nothing: the next record begins at the start of the ring
)

// record is a record's header.
type record struct {
	kind  recordKind
	last  bool
	bytes uint64 // that follow
	extra uint64
}

func ringAt(mem []byte, block uint64, size uint32) ring {
	return ring{mem: mem, block: block, size: uint64(size)}
}

// place returns the offset of the record at a position.
func (r *ring) place(position uint64) uint64 {
	return r.block + ringStart + position*line&(r.size-1)
}

// contiguous returns how many bytes a record at position may have, header
// included.
func (r *ring) contiguous(position uint64) uint64 { return r.size - position*line&(r.size-1) }

// capacity returns the ring's size in lines.
func (r *ring) capacity() uint64 { return r.size / line }

// linesOf returns the lines of a record with n bytes of data.
func linesOf(n uint64) uint64 { return (recordHeader + n + line - 1) / line }

// data returns the memory of a record's n data bytes. Precondition: they fit at
// position.
func (r *ring) data(position, n uint64) []byte {
	at := r.place(position) + recordHeader
	return r.mem[at : at+n]
}

// put writes the header of a record after its data, and advances lines. The
// receiver learns of the record by the caller's store to block.head.
func (r *ring) put(rec record) {
	at := r.place(r.lines)
	word := uint64(rec.kind) | rec.bytes<<32
	if rec.last {
		word |= 1 << 8
	}
	wordAt(r.mem, at+8).Store(rec.extra)
	wordAt(r.mem, at).Store(word)
	r.lines += linesOf(rec.bytes)
}

// get reads the header at position, where the sender has put available lines.
// For any content of the memory, the record that get returns lies in the ring
// and in those lines.
func (r *ring) get(position, available uint64) (record, error) {
	at := r.place(position)
	word := wordAt(r.mem, at).Load()
	rec := record{kind: recordKind(word), last: word&(1<<8) != 0, bytes: word >> 32, extra: wordAt(r.mem, at+8).Load()}
	if linesOf(rec.bytes) > available || recordHeader+rec.bytes > r.contiguous(position) {
		return record{}, corrupt("a record of %d bytes with %d lines put", rec.bytes, available)
	}
	return rec, nil
}

// corrupt returns the error for values that only a broken or hostile peer
// writes.
func corrupt(format string, args ...any) error {
	return fail(driver.GeneralError, fmt.Errorf("%w: the peer's control memory is corrupt: %s", driver.ErrLost, fmt.Sprintf(format, args...)))
}

// lengthList holds the lengths of the receives that a QP has posted. The index
// is their count modulo its size, a power of two.
type lengthList struct {
	mem   []byte
	block uint64
	size  uint64
}

func lengthsAt(mem []byte, block uint64, size uint32) lengthList {
	return lengthList{mem: mem, block: block, size: uint64(size)}
}

func (l *lengthList) store(count, length uint64) {
	wordAt(l.mem, l.block+lengthsStart+count&(l.size-1)*8).Store(length)
}

func (l *lengthList) load(count uint64) uint64 {
	return wordAt(l.mem, l.block+lengthsStart+count&(l.size-1)*8).Load()
}
