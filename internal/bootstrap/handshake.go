package bootstrap

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
)

const (
	nonceSize   = 32
	proofSize   = sha256.Size
	roleClient  = "gopgas client"
	roleServer  = "gopgas server"
	maxReason   = 512
	welcomeRest = proofSize + 4 + 1
)

// session holds the values that the proofs of one connection cover.
type session struct {
	secret         []byte
	client, server [nonceSize]byte
	rank           uint32
}

// prove returns the proof of one role, over both nonces, the rank and rest.
func (s *session) prove(role string, rest []byte) []byte {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write([]byte(role))
	mac.Write(s.client[:])
	mac.Write(s.server[:])
	mac.Write(binary.LittleEndian.AppendUint32(nil, s.rank))
	mac.Write(rest)
	return mac.Sum(nil)
}

// join is the client's side. It returns the size of the job.
func join(conn io.ReadWriter, secret []byte, rank int) (size int, err error) {
	s := session{secret: secret, rank: uint32(rank)}
	rand.Read(s.client[:])
	hello := binary.LittleEndian.AppendUint32(nil, s.rank)
	if err := send(conn, kindHello, append(hello, s.client[:]...)); err != nil {
		return 0, err
	}
	challenge, err := expect(conn, kindChallenge, nonceSize, nonceSize)
	if err != nil {
		return 0, err
	}
	copy(s.server[:], challenge)
	if err := send(conn, kindProof, s.prove(roleClient, nil)); err != nil {
		return 0, err
	}
	welcome, err := expect(conn, kindWelcome, welcomeRest, welcomeRest+maxReason)
	if err != nil {
		return 0, err
	}
	proof, rest := welcome[:proofSize], welcome[proofSize:]
	if !hmac.Equal(proof, s.prove(roleServer, rest)) {
		return 0, ErrHandshake
	}
	if rest[4] != codeOK {
		return 0, &RefusedError{Rank: rank, Reason: string(rest[5:]), Joined: rest[4] == codeJoined}
	}
	return int(binary.LittleEndian.Uint32(rest)), nil
}

// greet is the server's part of the handshake, up to the client's proof. A client
// that fails it learns only a random number.
func greet(conn io.ReadWriter, secret []byte) (*session, error) {
	hello, err := expect(conn, kindHello, 4+nonceSize, 4+nonceSize)
	if err != nil {
		return nil, err
	}
	s := &session{secret: secret, rank: binary.LittleEndian.Uint32(hello)}
	copy(s.client[:], hello[4:])
	rand.Read(s.server[:])
	if err := send(conn, kindChallenge, s.server[:]); err != nil {
		return nil, err
	}
	proof, err := expect(conn, kindProof, proofSize, proofSize)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(proof, s.prove(roleClient, nil)) {
		return nil, ErrHandshake
	}
	return s, nil
}

// welcome ends the server's part; it admits the rank, or sends the reason of the
// refusal.
func (s *session) welcome(conn io.Writer, size int, refusal *RefusedError) error {
	rest := binary.LittleEndian.AppendUint32(nil, uint32(size))
	switch {
	case refusal == nil:
		rest = append(rest, codeOK)
	case refusal.Joined:
		rest = append(rest, codeJoined)
	default:
		rest = append(rest, codeError)
	}
	if refusal != nil {
		rest = append(rest, refusal.Reason[:min(len(refusal.Reason), maxReason)]...)
	}
	return send(conn, kindWelcome, append(s.prove(roleServer, rest), rest...))
}

func send(w io.Writer, k kind, body []byte) error {
	b := appendHeader(make([]byte, 0, headerSize+len(body)), k, len(body))
	_, err := w.Write(append(b, body...))
	return err
}

func expect(r io.Reader, want kind, atLeast, atMost int) ([]byte, error) {
	k, body, err := readFrame(r, atMost)
	if err != nil {
		return nil, err
	}
	if k != want || len(body) < atLeast {
		return nil, fmt.Errorf("%w: kind %d with %d bytes during the handshake", ErrWire, k, len(body))
	}
	return body, nil
}
