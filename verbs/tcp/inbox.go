package tcp

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// Sizes of one receive.
const (
	scratchSize = 64 << 10          // what a device reads at once into its own buffer
	directMin   = 4 << 10           // payloads from here on are read into their destination
	behindMax   = 4 << 10           // what is read along behind such a payload
	longFrame   = 32 << 10          // behind a payload from here on, one is read for its header first:
	briefRead   = 2 << 10           // what is read so is neither copied twice nor told to the sender by itself
	readsInTurn = 4                 // of one connection before it is another's turn
	shortWrite  = driver.WholeWrite // a WRITE this long is applied as a whole, see begin
)

// inbox is the receiving half of a connection: a parser that keeps only what
// it must between two reads, the front of a frame.
type inbox struct {
	frame frame // whose payload is in reception
	q     *qp   // for whom, nil to have it thrown away
	left  int   // payload bytes still to come
	to    sink
	mr    *region // that to writes into, while it does
	late  bool    // what is thrown away comes too late for a landing, and counts as applied

	front  [maxHeader + shortWrite]byte
	fronts int // bytes in front

	vector []unix.Iovec
	brief  bool // the last frame was long, and so is the next, perhaps
	dead   bool // whatever comes is thrown away
}

// stop has everything from here on thrown away.
func (in *inbox) stop() {
	in.dead, in.left = true, 0
	in.release(in.q)
}

// release throws away the rest of a payload that is for q.
func (in *inbox) release(q *qp) {
	if in.q == q {
		in.q, in.mr = nil, nil
		in.to.drop()
	}
}

// fillInbox reads from the socket and processes what came, once, and a few times more
// if it seems that the rest of a payload is there: others wait for their turn. An error
// ends the connection.
func (l *link) fillInbox() error {
	for range readsInTurn {
		full, err := l.readInbox()
		if err != nil || !full || l.in.left < directMin {
			return err
		}
	}
	return nil
}

// readInbox reads once, and tells whether as much came as there was room for.
func (l *link) readInbox() (full bool, err error) {
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

// header takes the front of a frame off b, with what an earlier read left.
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

// begin starts the frame at the front of b and returns the bytes it took, 0
// when b is too short. A write of at most shortWrite bytes counts as part of the
// header, and is applied when all of it is there.
func (l *link) begin(b []byte) (int, error) {
	in := &l.in
	size, err := in.frame.decode(b)
	if size == 0 || err != nil {
		return 0, err
	}
	f := &in.frame
	if f.kind >= kindJoin {
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

// receiver is the queue pair that a frame is for, nil if that has ended.
func (l *link) receiver(f *frame) (*qp, error) {
	switch lane := &l.lanes[f.lane]; {
	case lane.state == laneLive && lane.q.state != driver.StateErr:
		return lane.q, nil
	case lane.state == laneLive || lane.state == laneOver:
		return nil, nil
	}
	return nil, fmt.Errorf("%w: frame kind %d of a queue pair that has not joined", errProtocol, f.kind)
}

// finish applies what the frame in reception asks for.
func (l *link) finish() error {
	l.in.mr = nil
	if l.in.q == nil {
		return nil
	}
	return l.in.q.finish()
}
