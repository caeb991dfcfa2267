package runtime

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Members that map no memory show each other where memory is that the other one alone writes, such as that of
// a channel. So no member asks for it through the launcher. Each has a line for each other one, in place of
// the words for choices:
//
//	0  address   8  key, 16 bytes   24  length, stored last
//
// The members know where these lines are by the exchange of Split. A team of more than starMost members has
// no room for them.
const (
	shownOffset = roomOffset - starMost*lineSize
	shownLength = 24
)

// shows reports whether members show each other places. All members get the same result.
func (t *Team) shows() bool {
	return !t.inner.Mapped && len(t.members) <= starMost && all(t.places, func(p *fabric.Place) bool { return p != nil })
}

// lineOf returns the offset of the line that a member writes.
func lineOf(member int) int { return shownOffset + member*lineSize }

// show tells a member where memory of this rank is. It returns at local completion.
func (t *Team) show(ctx context.Context, member int, r *fabric.Region) error {
	at := r.Place()
	if at == nil {
		return fmt.Errorf("%w: region %s has no place that members share", driver.ErrUnsupported, r.Name())
	}
	there, err := t.job.fabric.ResolveAt(ctx, t.members[member], t.region(), t.places[member])
	if err != nil {
		return err
	}
	line := binary.LittleEndian.AppendUint64(nil, at.Addr.Addr)
	line = binary.LittleEndian.AppendUint64(line, at.Addr.RKey.Hi)
	line = binary.LittleEndian.AppendUint64(line, at.Addr.RKey.Lo)
	offset := lineOf(t.rank)
	return there.Put(ctx, &fabric.Put{Body: fabric.Part{At: offset, Mem: line}, Tell: fabric.TellByFlag,
		Flag: fabric.Flag{Offset: offset + shownLength, Value: uint64(at.Length)}})
}

// shown waits until a member shows a place, and returns the memory there.
func (t *Team) shown(ctx context.Context, member int) (*fabric.Remote, error) {
	line := t.block.Bytes[lineOf(member):]
	length := atomics.Word64(line[shownLength:])
	if err := t.inner.AwaitLong(ctx, func() bool { return length.Load() > 0 }); err != nil {
		return nil, err
	}
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(line[at:]) }
	at := &fabric.Place{Provider: t.places[member].Provider, Length: int(length.Load()),
		Addr: driver.RemoteAddr{Addr: word(0), RKey: driver.Key{Hi: word(8), Lo: word(16)}}}
	return t.job.fabric.ResolveAt(ctx, t.members[member], "", at)
}
