//go:build linux

package shm

import (
	"fmt"
	"math/bits"
	"os"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Layout of a control memfd, all words in the host's byte order:
//
//	0                header, one page
//	tableOffset      MR table: maxMRs entries of one line
//	blocksOffset     QP blocks, each: the words of a block | lengths | ring
const (
	line         = 64
	headerSize   = 4096
	tableOffset  = headerSize
	entrySize    = line
	lengthsStart = 4 * line              // within a block
	ringStart    = 36 << 10              // within a block; a multiple of the page size
	maxDepth     = 4096                  // receives of one QP
	maxMessage   = 1 << 30               // bytes
	magic        = 0x0001_7361_6770_6f67 // "gopgas", layout 1
)

// header starts the control memfd.
type header struct {
	magic atomic.Uint64
	token [2]atomic.Uint64
	probe atomic.Uint64 // peers store here to learn whether they can, see peer.probe
	_     [line - 4*8]byte
	bell  [line]byte // wait.Bell for a rank without a shared one
	doors doorbells
}

// doorbells is a set of bits that peers set: bit i has QP i look at its
// peer. summary has a bit for each word with a bit set.
type doorbells struct {
	summary atomic.Uint64
	_       [line - 8]byte
	words   [maxQPs / 64]atomic.Uint64
}

// ring has the owner's QP i look. The caller has stored its change with an
// atomic before; take clears the bits before the QP looks. ring and take access
// words and summary in opposite order, so no bit is lost.
func (d *doorbells) ring(i uint32) {
	word, bit := &d.words[i/64], uint64(1)<<(i%64)
	if word.Load()&bit == 0 {
		word.Or(bit)
	}
	if d.summary.Load()&(1<<(i/64)) == 0 {
		d.summary.Or(1 << (i / 64))
	}
}

// take clears all bits and calls look for each QP with a bit.
func (d *doorbells) take(look func(i uint32)) {
	for words := d.summary.Swap(0); words != 0; words &= words - 1 {
		w := uint32(bits.TrailingZeros64(words))
		for set := d.words[w].Swap(0); set != 0; set &= set - 1 {
			look(w*64 + uint32(bits.TrailingZeros64(set)))
		}
	}
}

// entry is a line of the MR table. key is the Lo half of the registration's key
// while it is valid, else zero. A reader may trust the other fields only
// between two loads of key that agree.
type entry struct {
	key    atomic.Uint64 // partner: peer.lookup and view.valid of the poster
	secret atomic.Uint64 // Hi half
	fd     atomic.Uint64 // in the owner's process
	inode  atomic.Uint64
	offset atomic.Uint64 // within the memfd
	length atomic.Uint64
	access atomic.Uint64
	_      uint64
}

// block is the head of a QP block. Its owner writes, the peer reads.
type block struct {
	conn  atomic.Uint64 // epoch and phase, see connWord; partner: QP.connected
	nonce atomic.Uint64 // random identity of the QP
	bound atomic.Uint64 // tag of the peer QP that this one is bound to
	_     [line - 3*8]byte

	head atomic.Uint64 // lines ever put into the ring below; partner: QP.drain
	busy atomic.Uint64 // odd while a request may touch the peer's memory; partner: executionOf
	_    [line - 2*8]byte

	taken  atomic.Uint64 // lines ever taken from the peer's ring; partner: QP.room
	posted atomic.Uint64 // receives ever posted; partner: QP.credit
	_      [line - 2*8]byte

	want atomic.Uint64 // not 0: requests wait for a change of the peer's taken, posted or conn
	_    [line - 8]byte
}

// A connection word:
//
//	63                     2 1     0
//	+----------------------+-------+
//	|        epoch         | phase |
//	+----------------------+-------+
func connWord(epoch uint64, p phase) uint64 { return epoch<<2 | uint64(p) }

// A phase is the state of a QP as far as its peer must know it. It is the lower part of the word conn.
type phase uint64

const (
	phaseDown   phase = iota // RESET, INIT
	phaseUp                  // RTR, RTS, SQD
	phaseErr                 // ERR
	phaseClosed              // the QP is closed
)

func (p phase) String() string {
	return [...]string{"reset its QP", "is connected", "moved its QP to ERR", "closed its QP"}[p&3]
}

func epochOf(w uint64) uint64 { return w >> 2 }
func phaseOf(w uint64) phase  { return phase(w & 3) }

// tag names one incarnation of a QP in one word.
func tag(nonce, epoch uint64) uint64 { return nonce ^ epoch*0x9e37_79b9_7f4a_7c15 }

// blockSize returns the bytes of a QP in the control memfd.
func blockSize(ringBytes int) int64 { return ringStart + int64(ringBytes) }

func blocksOffset(cfg Config) int64 {
	page := int64(os.Getpagesize())
	return (tableOffset + int64(cfg.MaxMRs)*entrySize + page - 1) &^ (page - 1)
}

// newControl makes a context's control memfd with a fresh token.
func newControl(cfg Config, token [2]uint64) (*memory.Memfd, error) {
	m, err := memory.NewMemfd("gopgas-shm-control", blocksOffset(cfg)+int64(cfg.MaxQPs)*blockSize(cfg.RingBytes))
	if err != nil {
		return nil, err
	}
	if err := m.Commit(0, headerSize); err != nil {
		_ = m.Close() // the first error is the cause
		return nil, err
	}
	h := headerAt(m.Bytes())
	h.token[0].Store(token[0])
	h.token[1].Store(token[1])
	h.magic.Store(magic)
	return m, nil
}

// checkControl checks that an imported memfd is the control memfd of addr. It
// checks every place that addr names.
func checkControl(mem []byte, addr *address) error {
	size := uint64(len(mem))
	within := func(offset, n uint64) bool { return offset <= size && n <= size-offset }
	if !within(0, headerSize) || !within(tableOffset, uint64(addr.mrs)*entrySize) ||
		!within(addr.block, uint64(blockSize(int(addr.ring)))) {
		return fmt.Errorf("%w: the peer's control memfd has %d bytes, less than its address says", driver.ErrInvalid, size)
	}
	h := headerAt(mem)
	if h.magic.Load() != magic || h.token[0].Load() != addr.token[0] || h.token[1].Load() != addr.token[1] {
		return fmt.Errorf("%w: process %d is not the one the address was made by", driver.ErrLost, addr.pid)
	}
	return nil
}
