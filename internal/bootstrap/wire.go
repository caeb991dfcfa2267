package bootstrap

import (
	"encoding/binary"
	"fmt"
	"io"
)

// MaxMessage bounds a frame's body in bytes.
const MaxMessage = 64 << 20

const (
	offLength  = 0
	offMagic   = 4
	offVersion = 6
	offKind    = 7
	headerSize = 8

	magic   = 0x5047 // "GP"
	version = 4
)

// A kind is the type of a frame. The first four are those of the handshake: their bodies have fixed layouts
// (handshake.go). All others carry a message; the comments name the fields of the message that the kind uses.
type kind uint8

const (
	kindHello     kind = iota + 1 // client to server
	kindChallenge                 // server to client
	kindProof                     // client to server
	kindWelcome                   // server to client

	kindExchange   // client to server: name key, members, parts[0] mine; back: all parts in the order of members
	kindFailed     // server to members of an exchange: name key; code and rank give the cause; with codeMissing members and id, in nanoseconds, do
	kindCall       // client to client, by the server: id, name service, parts[0]
	kindReply      // back: id, code; parts[0] result, or name the error
	kindTell       // client to client, by the server: name service, parts[0]
	kindDead       // server to clients: rank died, name cause
	kindLeft       // server to clients: members said goodbye
	kindAbort      // client to server, and server to clients: rank gave up, name cause
	kindReport     // client to server's hooks: name, parts[0]
	kindOverflow   // server to caller: id of a call that was dropped, 0 for a Tell
	kindGoodbye    // client to server: code codeOK, or codeDead and name cause
	kindGoodbyeAck // server to client: all its messages have arrived
	kindPing       // client to server: it wants a response
	kindPong       // back
	kindEnd        // is no kind: all kinds are below
)

// These are codes of kindWelcome, kindReply, kindFailed and kindGoodbye.
const (
	codeOK       uint8 = iota
	codeError          // the service returned an error, or the server refuses the rank
	codeDead           // the rank is dead
	codeLeft           // the rank has left the job
	codeMismatch       // the rank named other members
	codeTooLarge       // all parts together exceed MaxMessage
	codeJoined         // a process has joined as this rank before
	codeMissing        // ranks did not join in time
)

// appendHeader appends the header of a frame with a body of so many bytes.
func appendHeader(b []byte, k kind, body int) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(body))
	b = binary.LittleEndian.AppendUint16(b, magic)
	return append(b, version, byte(k))
}

// readFrame reads one frame with a body of at most limit bytes. It checks the header only, since decode
// checks the body. Errors are errVersion, ErrWire and those of r.
func readFrame(r io.Reader, limit int) (kind, []byte, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(h[offLength:])
	k := kind(h[offKind])
	switch {
	case binary.LittleEndian.Uint16(h[offMagic:]) != magic:
		return 0, nil, fmt.Errorf("%w: wrong magic", ErrWire)
	case h[offVersion] != version:
		return 0, nil, fmt.Errorf("%w: version %d, this program speaks %d: build grun and the programs of all hosts from the same gopgas", errVersion, h[offVersion], version)
	case k == 0 || k >= kindEnd:
		return 0, nil, fmt.Errorf("%w: kind %d", ErrWire, k)
	case int64(n) > int64(limit):
		return 0, nil, fmt.Errorf("%w: %d bytes where %d are allowed", ErrWire, n, limit)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return k, body, nil
}
