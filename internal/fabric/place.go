package fabric

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A Place says where a region lies. A rank to which the owner gave it sends the owner no request.
type Place struct {
	Provider string
	Addr     driver.RemoteAddr
	Length   int
}

// Place returns the place of r if this rank has one provider, whose peers do not map its memory. Else it
// returns nil: peers that map memory find r in the list of this rank, and others send a request.
func (r *Region) Place() *Place {
	if r == nil {
		return nil
	}
	b := r.f.bindings[0]
	if len(r.f.bindings) > 1 || r.f.Mapping() && b.info.Memory.Maps || r.mrs[b] == nil {
		return nil
	}
	return &Place{Provider: b.name, Addr: r.at(b), Length: len(r.mem.Bytes)}
}

// Append appends the wire form of a place, or of none:
//
//	length of the provider's name, 1 byte, 0 for none | name | address | key, 16 bytes | length of the region
func (p *Place) Append(b []byte) []byte {
	if p == nil {
		return append(b, 0)
	}
	b = append(append(b, byte(len(p.Provider))), p.Provider...)
	for _, word := range []uint64{p.Addr.Addr, p.Addr.RKey.Hi, p.Addr.RKey.Lo, uint64(p.Length)} {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// CutPlace decodes the place at the beginning of b, nil for none, and returns the rest of b. The target
// checks each access to it.
func CutPlace(b []byte) (p *Place, rest []byte, ok bool) {
	const words = 4 * 8
	switch {
	case len(b) < 1:
		return nil, nil, false
	case b[0] == 0:
		return nil, b[1:], true
	case len(b) < 1+int(b[0])+words:
		return nil, nil, false
	}
	name, rest := string(b[1:1+int(b[0])]), b[1+int(b[0]):]
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(rest[8*i:]) }
	if word(3) > math.MaxInt {
		return nil, nil, false
	}
	p = &Place{Provider: name, Addr: driver.RemoteAddr{Addr: word(0), RKey: driver.Key{Hi: word(1), Lo: word(2)}}, Length: int(word(3))}
	return p, rest[words:], true
}

// ResolveAt is [Fabric.Resolve] for a region whose place its owner gave. If at is nil, it is Resolve.
func (f *Fabric) ResolveAt(ctx context.Context, rank int, name string, at *Place) (*Remote, error) {
	if at == nil {
		return f.Resolve(ctx, rank, name)
	}
	p, err := f.PeerFor(ctx, rank, name)
	if err != nil {
		return nil, err
	}
	if p.bind == nil || p.bind.name != at.Provider {
		return f.Resolve(ctx, rank, name)
	}
	return f.remote(ctx, p, regionReply{Addr: at.Addr, Length: at.Length})
}
