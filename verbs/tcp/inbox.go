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
// frame between two reads. Precondition of all functions in this file: token and lock are
// held. link.serve calls fillInbox when the socket is readable:
//
//	fillInbox -> readInbox -> process -> header -> begin    a frame starts
//	                             |                   +----> applyShort, for a short WRITE
//	                             +-> to.write               its payload comes
//	                             +-> finish                 its payload is complete
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

// stop makes the inbox discard all further input. A link that ends calls it.
func (in *inbox) stop() {
	in.dead, in.left = true, 0
	in.release(in.q)
}

// release discards the remaining payload if it is for q, which goes to ERR or leaves its stream.
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

// readInbox reads once, and reports whether the read filled its buffers. A long rest of a payload goes
// to its destination, and the bytes behind it to the device's buffer. All other bytes go to that buffer.
func (l *link) readInbox() (full bool, err error) {
	if l.tls != nil {
		return l.readRecords()
	}
	in, scratch := &l.in, l.dev.scratch
	if in.left >= directMin && !in.to.discard {
		return l.readDirect()
	}
	if in.brief {
		in.brief, scratch = false, scratch[:briefRead]
	}
	n, errno := receive(l.fd, scratch)
	if errno != 0 || n == 0 {
		return false, endOfRead(errno)
	}
	return n == len(scratch), l.process(scratch[:n])
}

// readDirect has the kernel write the rest of the payload to its destination. It processes the bytes behind.
func (l *link) readDirect() (full bool, err error) {
	in, behind, direct := &l.in, l.dev.scratch[:behindMax], l.in.left
	in.vector = append(in.to.vector(in.vector[:0], direct), iovec(behind))
	n, errno := receiveVector(l.fd, in.vector)
	clear(in.vector)
	if errno != 0 || n == 0 {
		return false, endOfRead(errno)
	}
	inPlace := min(n, direct)
	in.to.off += inPlace
	in.left -= inPlace
	if in.left == 0 {
		if err := l.finish(); err != nil {
			return false, err
		}
	}
	return n == direct+behindMax, l.process(behind[:n-inPlace])
}

// endOfRead returns the error of a read without bytes, nil if the socket is only empty.
func endOfRead(errno unix.Errno) error {
	switch errno {
	case 0:
		return errPeerClosed
	case unix.EAGAIN, unix.EINTR:
		return nil
	}
	return errno
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

// finish applies the frame in reception, whose payload is complete.
func (l *link) finish() error {
	l.in.mr = nil
	if l.in.q == nil {
		return nil
	}
	return l.in.q.finish()
}
