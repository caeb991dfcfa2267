package ibv

import (
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// These are the offsets and sizes of a QP address; the package doc has the
// layout.
const (
	addressMagic   = 0x42494750 // "PGIB"
	addressVersion = 1
	addressSize    = 36

	offVersion = 4
	offMTU     = 6
	offReads   = 7
	offQPN     = 8
	offPSN     = 12
	offLID     = 16
	offLink    = 18
	offZero    = 19
	offGID     = 20
)

// These are the link layers.
const (
	linkInfiniBand = 1
	linkEthernet   = 2
)

const (
	max24        = 1<<24 - 1 // QP numbers and packet numbers
	firstMultLID = 0xC000    // LIDs from here on are multicast
)

// gid is a global identifier, in network order: an IPv6 address, or an IPv4
// address mapped into one.
type gid [16]byte

// address is a decoded QP address: it holds all that the peer needs to connect.
type address struct {
	mtu   uint8 // enum ibv_mtu
	reads uint8 // READs and atomics that this end takes at once
	qpn   uint32
	psn   uint32 // of the first packet that this end sends
	lid   uint16 // InfiniBand
	link  uint8
	gid   gid // Ethernet
}

// encode returns the address as a peer gets it. address.go has its layout.
func (a *address) encode() []byte {
	b := make([]byte, addressSize)
	binary.LittleEndian.PutUint32(b, addressMagic)
	binary.LittleEndian.PutUint16(b[offVersion:], addressVersion)
	b[offMTU], b[offReads] = a.mtu, a.reads
	binary.LittleEndian.PutUint32(b[offQPN:], a.qpn)
	binary.LittleEndian.PutUint32(b[offPSN:], a.psn)
	binary.LittleEndian.PutUint16(b[offLID:], a.lid)
	b[offLink] = a.link
	copy(b[offGID:], a.gid[:])
	return b
}

// decodeAddress checks the bytes alone.
func decodeAddress(b []byte) (address, error) {
	if len(b) < offMTU || binary.LittleEndian.Uint32(b) != addressMagic {
		return address{}, badAddress("is not one of provider ibv")
	}
	if v := binary.LittleEndian.Uint16(b[offVersion:]); v != addressVersion {
		return address{}, badAddress("has version %d, not %d", v, addressVersion)
	}
	if len(b) != addressSize {
		return address{}, badAddress("has %d bytes, not %d", len(b), addressSize)
	}
	a := address{
		mtu: b[offMTU], reads: b[offReads],
		qpn:  binary.LittleEndian.Uint32(b[offQPN:]),
		psn:  binary.LittleEndian.Uint32(b[offPSN:]),
		lid:  binary.LittleEndian.Uint16(b[offLID:]),
		link: b[offLink],
		gid:  gid(b[offGID:]),
	}
	switch {
	case a.mtu < 1 || a.mtu > maxMTUCode:
		return address{}, badAddress("has MTU code %d", a.mtu)
	case a.qpn == 0 || a.qpn > max24 || a.psn > max24:
		return address{}, badAddress("has QP number %#x and packet number %#x of more than 24 bits", a.qpn, a.psn)
	case b[offZero] != 0:
		return address{}, badAddress("has a byte set that must be zero")
	}
	return a, a.checkLink()
}

// checkLink refuses a LID or GID that names no port: multicast, or none at all.
func (a *address) checkLink() error {
	switch a.link {
	case linkInfiniBand:
		if a.lid == 0 || a.lid >= firstMultLID {
			return badAddress("has LID %#x, which names no port", a.lid)
		}
	case linkEthernet:
		if a.gid == (gid{}) || a.gid[0] == 0xFF {
			return badAddress("has GID %v, which names no port", a.gid)
		}
	default:
		return badAddress("has link layer %d", a.link)
	}
	return nil
}

func badAddress(format string, args ...any) error {
	return fmt.Errorf("%w: peer address %s; pass what the peer's Address returned", driver.ErrInvalid, fmt.Sprintf(format, args...))
}
