package bootstrap

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// message is the content of every frame after the handshake.
type message struct {
	kind    kind
	code    uint8
	rank    int
	id      uint64
	name    string
	members []int
	parts   [][]byte
}

// part returns the only part of a message with one part.
func (m *message) part() []byte {
	if len(m.parts) == 0 {
		return nil
	}
	return m.parts[0]
}

// maxName bounds keys, service names and causes; longer causes are cut.
const maxName = math.MaxUint16

// frame encodes m. It fails with ErrTooLarge only.
func (m *message) frame() ([]byte, error) {
	parts := listOf(m.parts)
	n := 4 + 1 + 8 + 2 + len(m.name) + 4 + 8*runsOf(m.members) + parts.bytes
	if n > MaxMessage || len(m.name) > maxName || max(len(m.members), len(m.parts)) > maxItems {
		return nil, ErrTooLarge
	}
	le := binary.LittleEndian
	b := appendHeader(make([]byte, 0, headerSize+n), m.kind, n)
	b = le.AppendUint32(b, uint32(m.rank))
	b = append(b, m.code)
	b = le.AppendUint64(b, m.id)
	b = le.AppendUint16(b, uint16(len(m.name)))
	b = append(b, m.name...)
	b = appendMembers(b, m.members)
	return parts.append(b), nil
}

// readMessage reads and decodes one message.
func readMessage(r io.Reader) (message, error) {
	k, body, err := readFrame(r, MaxMessage)
	if err != nil {
		return message{}, err
	}
	return decode(k, body)
}

// decode parses a frame's body. The parts of the message are slices of it.
func decode(k kind, body []byte) (message, error) {
	if k <= kindWelcome || k >= kindEnd {
		return message{}, fmt.Errorf("%w: kind %d after the handshake", ErrWire, k)
	}
	c := cursor{rest: body}
	m := message{kind: k, rank: int(int32(c.u32())), code: c.u8(), id: c.u64()}
	m.name = string(c.bytes(int(c.u16())))
	m.members, m.parts = c.members(), c.parts()
	if c.short || len(c.rest) != 0 {
		return message{}, fmt.Errorf("%w: %d bytes of kind %d do not add up", ErrWire, len(body), k)
	}
	return m, nil
}

// A cursor cuts fields from the front of a body. After an incomplete field, short
// is set and every further field is zero.
type cursor struct {
	rest  []byte
	short bool
}

// bytes returns the next n bytes. If fewer are left, all later reads are short, too, and the caller
// looks at short once.
func (c *cursor) bytes(n int) []byte {
	if c.short || n < 0 || n > len(c.rest) {
		c.short, c.rest = true, nil
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

// fixed returns the n bytes of a field, or n zero bytes if the body ends before.
func (c *cursor) fixed(n int) []byte {
	if b := c.bytes(n); b != nil {
		return b
	}
	return make([]byte, n)
}

func (c *cursor) u8() uint8   { return c.fixed(1)[0] }
func (c *cursor) u16() uint16 { return binary.LittleEndian.Uint16(c.fixed(2)) }
func (c *cursor) u32() uint32 { return binary.LittleEndian.Uint32(c.fixed(4)) }
func (c *cursor) u64() uint64 { return binary.LittleEndian.Uint64(c.fixed(8)) }

// count reads how many items of at least size bytes follow.
func (c *cursor) count(size int) int {
	n := int(c.u32())
	if n > len(c.rest)/size {
		c.short = true
		return 0
	}
	return n
}
