//go:build linux

package tcp

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// These are the sizes of one receive.
const (
	scratchSize = 64 << 10          // bytes that a device reads at once into its own buffer
	directMin   = 4 << 10           // the kernel writes payloads of this length or more to their destination
	behindMax   = 4 << 10           // bytes that the same read takes behind such a payload
	longFrame   = 32 << 10          // after a payload of this length or more, the next read is brief
	briefRead   = 2 << 10           // bytes of a brief read, which is for the next header: it copies little payload and causes no TCP acknowledgement
	readsInTurn = 4                 // reads from one connection before the next connection has its turn
	shortWrite  = driver.WholeWrite // a WRITE this long is applied as a whole, see begin
)

// inbox is the receiving half of a connection: a parser that keeps only the front of a
// frame between two reads.
type inbox struct {
	frame frame // the frame with the payload in reception
	q     *qp   // the frame's queue pair, nil to discard the payload
	left  int   // payload bytes still to come
	to    sink
	mr    *region // the region of to, during the payload
	late  bool    // the discarded payload is late for a landing, and counts as applied

	body *body // takes the payload of an ACCUMULATE, WRITE_BLOCKS or READ_BLOCKS

	front  [maxHeader + shortWrite]byte
	fronts int // bytes in front

	vector []unix.Iovec
	brief  bool // the next read is brief: the last frame was long, and the next may be
	dead   bool // the inbox discards all input
}

// stop makes the inbox discard all further input.
func (in *inbox) stop() {
	in.dead, in.left = true, 0
	in.release(in.q)
}

// release discards the remaining payload if it is for q.
func (in *inbox) release(q *qp) {
	if in.q == q {
		in.q, in.mr = nil, nil
		in.to.drop()
	}
}

// fillInbox reads from the socket once and processes the bytes. It reads a few times
// more if more of a payload seems to be there; other connections wait for their turn.
// An error ends the connection.
func (l *link) fillInbox() error {
	for range readsInTurn {
		full, err := l.readInbox()
		if err != nil || !full || l.in.left < directMin {
			return err
		}
	}
	return nil
}

// readInbox reads once, and reports whether the read filled its buffers.
func (l *link) readInbox() (full bool, err error) {
	if l.tls != nil {
		return l.readRecords()
	}
	in, scratch := &l.in, l.dev.scratch
	var n, direct, room int
	var errno unix.Errno
	if in.left >= directMin && !in.to.discard {
		direct = in.left
		in.vector = append(in.to.vector(in.vector[:0], direct), iovec(scratch[:behindMax]))
		room = direct + behindMax
		n, errno = receiveVector(l.fd, in.vector)
		clear(in.vector)
	} else {
		if in.brief {
			in.brief, scratch = false, scratch[:briefRead]
		}
		room = len(scratch)
		n, errno = receive(l.fd, scratch)
	}
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return false, nil
	case errno != 0:
		return false, errno
	case n == 0:
		return false, errPeerClosed
	}
	full = n == room
	if direct > 0 {
		inPlace := min(n, direct)
		in.to.off += inPlace
		in.left -= inPlace
		n -= inPlace
		if in.left == 0 {
			if err := l.finish(); err != nil {
				return false, err
			}
		}
	}
	return full, l.process(scratch[:n])
}

// process consumes all of b: payload for the frame in reception, and frames.
func (l *link) process(b []byte) error {
	in := &l.in
	for len(b) > 0 && !in.dead {
		if in.left > 0 {
			n := min(in.left, len(b))
			in.to.write(b[:n])
			in.left -= n
			b = b[n:]
			if in.left == 0 {
				if err := l.finish(); err != nil {
					return err
				}
			}
			continue
		}
		rest, err := l.header(b)
		if err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// header takes the front of a frame off b, behind the bytes that an earlier read left.
func (l *link) header(b []byte) (rest []byte, err error) {
	in := &l.in
	if in.fronts == 0 {
		size, err := l.begin(b)
		if err != nil || size > 0 {
			return b[size:], err
		}
		in.fronts = copy(in.front[:], b)
		return nil, nil
	}
	had := in.fronts
	in.fronts += copy(in.front[had:], b)
	size, err := l.begin(in.front[:in.fronts])
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, nil
	}
	in.fronts = 0
	return b[size-had:], nil
}

// begin starts the frame at the front of b. It returns the bytes that it took, 0 when b
// is too short. A write of at most shortWrite bytes counts as part of the header. begin
// applies it when all of it is there.
func (l *link) begin(b []byte) (int, error) {
	in := &l.in
	size, err := in.frame.decode(b)
	if size == 0 || err != nil {
		return 0, err
	}
	f := &in.frame
	if f.kind >= kindHello {
		return size, l.control(f, b[:size])
	}
	short := f.kind == kindWrite && f.bodySize <= shortWrite
	if short && len(b) < size+f.bodySize {
		return 0, nil
	}
	if in.q, err = l.receiver(f); err != nil {
		return 0, err
	}
	switch {
	case in.q == nil && short: // its front may be there from an earlier read
		return size + f.bodySize, nil
	case in.q == nil:
		in.to.drop()
	case short:
		return size + f.bodySize, in.q.applyShort(f, b[size:size+f.bodySize])
	default:
		if err := in.q.open(f); err != nil {
			return 0, err
		}
	}
	in.brief = in.brief || f.bodySize >= longFrame
	if in.left = f.bodySize; in.left == 0 {
		return size, l.finish()
	}
	return size, nil
}

// receiver returns the queue pair of a frame, nil if that has ended. The queue pairs of
// both ends may have ended because each refused a request of the peer: then a NAK is
// the last frame of a stream.
func (l *link) receiver(f *frame) (*qp, error) {
	s := l.find(f.stream)
	switch {
	case l.late(f, s):
		return nil, nil
	case s == nil || s.state != streamLive:
		return nil, fmt.Errorf("%w: frame kind %d of a stream that is not open", errProtocol, f.kind)
	case s.q.state != driver.StateErr:
		return s.q, nil
	case f.kind == kindNak:
		s.q.disconnect()
	}
	return nil, nil
}

// finish applies the frame in reception.
func (l *link) finish() error {
	l.in.mr = nil
	if l.in.q == nil {
		return nil
	}
	return l.in.q.finish()
}
