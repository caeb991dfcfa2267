package channel

// A ring holds the pieces of one direction that do not fit in their slots, one behind the
// other. There are two, which share the order of the slots. The short ring stays in a core's
// own cache; long pieces would drive short ones out of it.
//
//	Ring bytes:  | short: 1/4, pieces up to 1/16 | long: 3/4, pieces up to 1/4 |
type ring struct {
	at   int    // offset in an endpoint's memory
	size int    // bytes
	tell uint64 // the receiver tells the sender once it has freed so many bytes, and at least one
}

const (
	short = iota
	long
	rings
)

// MostPiece returns the length of the longest piece among rings of so many bytes, which are
// a multiple of 1024.
func MostPiece(bytes int) int { return bytes / 4 }

// mostShort returns the length of the longest piece in the short ring.
func mostShort(bytes int) int { return bytes / 16 }

// ringsOf divides the bytes. A ring has room for Lead+1 of its longest pieces, and for the
// bytes of which the receiver did not tell the sender.
func ringsOf(bytes int) [rings]ring {
	room := func(at, size, most int) ring { return ring{at, size, uint64(size - (Lead+1)*most)} }
	return [rings]ring{
		short: room(ringsOffset, bytes/4, mostShort(bytes)),
		long:  room(ringsOffset+bytes/4, bytes/4*3, MostPiece(bytes)),
	}
}

// ringOf returns the ring of a piece.
func (e *End) ringOf(bytes int) int {
	if bytes > mostShort(e.Ring) {
		return long
	}
	return short
}

// behind places n bytes behind a position. It returns their offset in an endpoint's memory
// and the position of their end. Positions never wrap. The bytes lie in one part, of whole
// cache lines.
func (r *ring) behind(position uint64, n int) (begin int, end uint64) {
	const line = 64
	all, size := uint64(r.size), uint64(n+line-1)&^(line-1)
	if left := all - position%all; left < size {
		position += left
	}
	return r.at + int(position%all), position + size
}

// positions are those in both rings behind a slot.
type positions [rings]uint64
