//go:build linux

package tcp

import "golang.org/x/sys/unix"

// These are the sizes of the combining buffer and of one system call.
const (
	combineMax  = 64 << 10            // queued bytes that leave at once
	requestRoom = 2 * combineMax      // buffer that requests may fill
	bufferMax   = requestRoom + 4<<10 // the remaining bytes are for responses
	controlMax  = 2 * batchMax        // queued bytes from which no peer opens streams
	bufferMin   = 2 << 10             // buffer that an idle connection keeps
	copyMax     = 2 << 10             // larger payloads leave from their own memory
	inlineCopy  = 16 << 10            // inline payloads up to this length are copied and may be combined
	batchMax    = 2 * maxPayload      // bytes of one system call, about
	maxPieces   = 64                  // pieces of one system call
	pieceSlack  = 1 + maxSegments     // pieces that one frame may need
	maxSegments = 16                  // segments of one work request
)

// A piece is a run of bytes on its way to the socket. A piece of a request or of a
// region lies in their memory; all other pieces are in the buffer.
type piece struct {
	mem []byte
	q   *qp // its queue pair, unless it is in the buffer
	req *request
	mr  *region
}

// outbox holds the frames that the socket has not taken yet. It copies headers and
// small payloads into one buffer, which it empties when all bytes have left. Large
// payloads stay in their own memory.
type outbox struct {
	buf     []byte
	pieces  []piece
	vector  []unix.Iovec
	queued  int  // bytes in pieces
	tail    bool // the last piece ends at the end of the buffer
	blocked bool // the socket is full: the device waits until it is writable
	broken  bool // the connection is over: earlier input is still to be read
}

func (o *outbox) reset() {
	clear(o.pieces)
	*o = outbox{buf: o.buf[:0], pieces: o.pieces[:0], vector: o.vector}
}

func (o *outbox) empty() bool { return len(o.pieces) == 0 }

// open reports whether another frame may be queued before the socket takes some.
func (o *outbox) open() bool {
	return o.queued < batchMax && len(o.pieces) <= maxPieces-pieceSlack
}

// fits reports whether n bytes can be copied without passing limit.
func (o *outbox) fits(n, limit int) bool { return len(o.buf)+n <= limit }

// extend queues n bytes of the buffer and returns them to be filled.
func (o *outbox) extend(n int) []byte {
	start := len(o.buf)
	if start+n > cap(o.buf) {
		o.buf = make([]byte, 0, min(bufferMax, max(bufferMin, 2*cap(o.buf), start+n)))
		start, o.tail = 0, false
	}
	o.buf = o.buf[:start+n]
	o.queued += n
	if o.tail {
		p := &o.pieces[len(o.pieces)-1]
		p.mem = p.mem[:len(p.mem)+n]
	} else {
		o.pieces = append(o.pieces, piece{mem: o.buf[start : start+n]})
		o.tail = true
	}
	return o.buf[start : start+n]
}

// refer queues bytes that stay in their own memory until the socket takes them.
func (o *outbox) refer(p piece) {
	if len(p.mem) == 0 {
		return
	}
	o.pieces = append(o.pieces, p)
	o.queued += len(p.mem)
	o.tail = false
}

// put queues a frame without a payload.
func (o *outbox) put(f *frame) { f.encode(o.extend(headerSizes[f.kind])) }

// write writes as many pieces as the socket takes.
func (o *outbox) write(fd int) unix.Errno {
	var n int
	var errno unix.Errno
	if len(o.pieces) == 1 {
		n, errno = send(fd, o.pieces[0].mem)
	} else {
		o.vector = o.vector[:0]
		for i := range o.pieces {
			o.vector = append(o.vector, iovec(o.pieces[i].mem))
		}
		n, errno = sendVector(fd, o.vector)
		clear(o.vector)
	}
	if errno != 0 {
		return errno
	}
	o.left(n)
	return 0
}

// left forgets the first n bytes, which the socket has taken.
func (o *outbox) left(n int) {
	o.queued -= n
	if o.queued == 0 {
		clear(o.pieces)
		o.pieces, o.buf, o.tail = o.pieces[:0], o.buf[:0], false
		return
	}
	i := 0
	for ; n >= len(o.pieces[i].mem); i++ {
		n -= len(o.pieces[i].mem)
	}
	o.pieces[i].mem = o.pieces[i].mem[n:]
	rest := copy(o.pieces, o.pieces[i:])
	clear(o.pieces[rest:])
	o.pieces = o.pieces[:rest]
}

// detach copies these queued pieces aside, so that their owner may use their memory
// again.
func (o *outbox) detach(these func(*piece) bool) {
	for i := range o.pieces {
		if p := &o.pieces[i]; these(p) {
			*p = piece{mem: append([]byte(nil), p.mem...)}
		}
	}
}

// unsent returns the offset of the first byte of req's payload that has not left.
func (o *outbox) unsent(req *request) int {
	at := req.Sent
	for i := range o.pieces {
		if o.pieces[i].req == req {
			at -= len(o.pieces[i].mem)
		}
	}
	return at
}

// move makes the queued pieces of req leave from its captured payload. Its last piece
// ends at the end of its frames.
func (o *outbox) move(req *request) {
	end := req.Sent
	for i := len(o.pieces) - 1; i >= 0; i-- {
		if p := &o.pieces[i]; p.req == req {
			start := end - len(p.mem)
			p.mem, end = req.saved[start:end:end], start
		}
	}
}
