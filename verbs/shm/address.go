//go:build linux

package shm

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gopgas/gopgas/verbs/driver"
)

// addressSize is the length of a QP address. It is little-endian:
//
//	 0  8  magic, as in the control memfd
//	 8  4  process id
//	12  4  descriptor of the control memfd in that process
//	16  8  its inode
//	24 16  its token
//	40  4  entries in the MR table
//	44  4  index of the QP: its doorbell
//	48  8  offset of the QP block
//	56  4  bytes of its ring
//	60  4  receives that its list of lengths holds
//	64  8  nonce of the QP
//	72  8  inode of the memfd that holds the bell
//	80  4  descriptor of that memfd
//	84  4  zero
//	88  8  offset of the bell
const addressSize = 96

// address is a decoded QP address.
type address struct {
	pid, fd    uint32
	inode      uint64
	token      [2]uint64
	mrs, index uint32
	block      uint64
	ring       uint32
	receives   uint32
	nonce      uint64
	bellInode  uint64
	bellFD     uint32
	bellOffset uint64
}

// encode returns the bytes of an address, in the layout above.
func (a *address) encode() []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, addressSize)
	b = le.AppendUint64(b, magic)
	b = le.AppendUint32(b, a.pid)
	b = le.AppendUint32(b, a.fd)
	b = le.AppendUint64(b, a.inode)
	b = le.AppendUint64(b, a.token[0])
	b = le.AppendUint64(b, a.token[1])
	b = le.AppendUint32(b, a.mrs)
	b = le.AppendUint32(b, a.index)
	b = le.AppendUint64(b, a.block)
	b = le.AppendUint32(b, a.ring)
	b = le.AppendUint32(b, a.receives)
	b = le.AppendUint64(b, a.nonce)
	b = le.AppendUint64(b, a.bellInode)
	b = le.AppendUint32(b, a.bellFD)
	b = le.AppendUint32(b, 0)
	return le.AppendUint64(b, a.bellOffset)
}

// decodeAddress refuses bytes that no QP of this package produces. checkControl
// then compares the address with the peer's memory.
func decodeAddress(b []byte) (*address, error) {
	le := binary.LittleEndian
	if len(b) != addressSize || le.Uint64(b) != magic {
		return nil, fmt.Errorf("shm: %w: %d bytes that are no address of an shm QP", driver.ErrInvalid, len(b))
	}
	a := &address{
		pid: le.Uint32(b[8:]), fd: le.Uint32(b[12:]), inode: le.Uint64(b[16:]),
		token: [2]uint64{le.Uint64(b[24:]), le.Uint64(b[32:])},
		mrs:   le.Uint32(b[40:]), index: le.Uint32(b[44:]),
		block: le.Uint64(b[48:]), ring: le.Uint32(b[56:]), receives: le.Uint32(b[60:]),
		nonce: le.Uint64(b[64:]), bellInode: le.Uint64(b[72:]), bellFD: le.Uint32(b[80:]), bellOffset: le.Uint64(b[88:]),
	}
	if field := a.outOfRange(); field != "" || le.Uint32(b[84:]) != 0 {
		return nil, fmt.Errorf("shm: %w: QP address with %s out of range", driver.ErrInvalid, field)
	}
	return a, nil
}

// outOfRange names the first field that no correct peer has, "" if there is none. Later code relies on
// these bounds.
func (a *address) outOfRange() string {
	switch {
	case a.pid == 0 || a.pid > math.MaxInt32:
		return "process id"
	case a.fd > math.MaxInt32 || a.bellFD > math.MaxInt32:
		return "descriptor"
	case a.mrs == 0 || a.mrs > maxMRs:
		return "MR table"
	case a.index >= maxQPs:
		return "QP index"
	case a.block%headerSize != 0:
		return "QP block"
	case !validRing(int(a.ring)):
		return "ring"
	case a.receives == 0 || a.receives > maxDepth || a.receives&(a.receives-1) != 0:
		return "receive depth"
	case a.bellOffset%8 != 0:
		return "bell"
	}
	return ""
}
