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

// kind is the type of a frame.
type kind uint8

const (
	kindHello kind = iota + 1
	kindChallenge
	kindProof
	kindWelcome

	kindExchange // name key, members, parts[0] mine; back: all parts in the order of members
	kindFailed   // name key; code and rank give the cause; with codeMissing members and id, in nanoseconds, do
	kindCall     // id, name service, parts[0]
	kindReply    // id, code; parts[0] result, or name the error
	kindTell     // name service, parts[0]
	kindDead     // rank died, name cause
	kindLeft     // members said goodbye
	kindAbort    // rank gave up, name cause
	kindReport   // name, parts[0]
	kindOverflow // id of a call that was dropped, 0 for a Tell
	kindGoodbye  // code codeOK, or codeDead and name cause
	kindGoodbyeAck
	kindPing // do you answer?
	kindPong
	kindEnd
)

// Codes of kindWelcome, kindReply, kindFailed and kindGoodbye.
const (
	codeOK uint8 = iota
	codeError
	codeDead
	codeLeft
	codeMismatch
	codeTooLarge
	codeJoined
	codeMissing
)

func appendHeader(b []byte, k kind, body int) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(body))
	b = binary.LittleEndian.AppendUint16(b, magic)
	return append(b, version, byte(k))
}

// readFrame reads one frame with a body of at most limit bytes.
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
