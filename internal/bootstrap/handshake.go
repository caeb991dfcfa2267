package bootstrap

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// Offsets of a hello and of the fields that a welcome's proof covers.
const (
	helloRank  = 0  // anyRank: the server chooses
	helloSize  = 4  // 0: the client takes any size
	helloWait  = 8  // milliseconds; 0: no bound
	helloTLS   = 12 // 1: the client uses TLS, wherever the connection leaves its process
	helloNonce = 13
	helloSpan  = helloNonce + nonceSize

	welcomeRank   = 0
	welcomeSize   = 4
	welcomeHosted = 8
	welcomeStatus = 9
	welcomeReason = 10
)

const (
	nonceSize   = 32
	proofSize   = sha256.Size
	roleClient  = "gopgas client"
	roleServer  = "gopgas server"
	maxReason   = 512
	welcomeRest = proofSize + welcomeReason
	anyRank     = math.MaxUint32
)

// AnyRank lets the rendezvous choose the number of a rank that joins.
const AnyRank = -1

// A Joining says how a process joins a job.
type Joining struct {
	Rank int           // its number, or AnyRank
	Size int           // the number of ranks that it expects; 0: any
	Wait time.Duration // bounds the start of the job, from the first join on; 0: no bound
	// TLS makes [Join] encrypt the connection, and check by the job's secret that the
	// rendezvous is the job's. The server refuses a rank that differs from others in this.
	TLS bool
}

// session holds the values that the proofs of one connection cover.
type session struct {
	secret  []byte
	binding []byte // to the TLS connection; nil without
	hello   [helloSpan]byte
	server  [nonceSize]byte
}

// newSession begins the client's side of a connection.
func newSession(secret []byte, j Joining) *session {
	s := &session{secret: secret}
	le := binary.LittleEndian
	le.PutUint32(s.hello[helloRank:], uint32(j.Rank))
	le.PutUint32(s.hello[helloSize:], uint32(j.Size))
	le.PutUint32(s.hello[helloWait:], uint32(min(j.Wait.Milliseconds(), math.MaxUint32)))
	if j.TLS {
		s.hello[helloTLS] = 1
	}
	rand.Read(s.hello[helloNonce:])
	return s
}

// joining returns what the client's hello says. Its Rank and Size may be impossible.
func (s *session) joining() Joining {
	le := binary.LittleEndian
	j := Joining{
		Rank: int(le.Uint32(s.hello[helloRank:])),
		Size: int(le.Uint32(s.hello[helloSize:])),
		Wait: time.Duration(le.Uint32(s.hello[helloWait:])) * time.Millisecond,
		TLS:  s.hello[helloTLS] != 0,
	}
	if j.Rank == anyRank {
		j.Rank = AnyRank
	}
	return j
}

// prove returns the proof of one role, over the hello, the server's nonce and rest.
func (s *session) prove(role string, rest []byte) []byte {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write([]byte(role))
	mac.Write(s.binding)
	mac.Write(s.hello[:])
	mac.Write(s.server[:])
	mac.Write(rest)
	return mac.Sum(nil)
}

// A welcome is the server's response to a client that has proved the secret.
type welcome struct {
	rank, size int
	hosted     bool // the server is in the process of rank 0
	refusal    *RefusedError
}

// challenge is the first half of the client's side: it ends with the server's nonce.
func (s *session) challenge(conn io.ReadWriter) error {
	if err := send(conn, kindHello, s.hello[:]); err != nil {
		return err
	}
	nonce, err := expect(conn, kindChallenge, nonceSize, nonceSize)
	copy(s.server[:], nonce)
	return err
}

// join is the second half of the client's side. It returns a *RefusedError if the server
// refuses the rank.
func (s *session) join(conn io.ReadWriter) (w welcome, err error) {
	if err := send(conn, kindProof, s.prove(roleClient, nil)); err != nil {
		return w, err
	}
	body, err := expect(conn, kindWelcome, welcomeRest, welcomeRest+maxReason)
	if err != nil {
		return w, err
	}
	proof, rest := body[:proofSize], body[proofSize:]
	if !hmac.Equal(proof, s.prove(roleServer, rest)) {
		return w, ErrHandshake
	}
	if w = decodeWelcome(rest); w.refusal != nil {
		return w, w.refusal
	}
	if w.rank >= w.size {
		return w, fmt.Errorf("%w: welcome of rank %d of %d", ErrWire, w.rank, w.size)
	}
	return w, nil
}

// decodeWelcome parses the fields of a welcome behind its proof.
func decodeWelcome(rest []byte) welcome {
	le := binary.LittleEndian
	w := welcome{
		rank:   int(int32(le.Uint32(rest[welcomeRank:]))),
		size:   int(le.Uint32(rest[welcomeSize:])),
		hosted: rest[welcomeHosted] != 0,
	}
	if status := rest[welcomeStatus]; status != codeOK {
		w.refusal = &RefusedError{Rank: w.rank, Reason: string(rest[welcomeReason:]), Joined: status == codeJoined}
	}
	return w
}

// encode is the inverse of decodeWelcome.
func (w welcome) encode() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(w.rank))
	b = le.AppendUint32(b, uint32(w.size))
	hosted, status := byte(0), codeOK
	if w.hosted {
		hosted = 1
	}
	if w.refusal == nil {
		return append(b, hosted, status)
	}
	if status = codeError; w.refusal.Joined {
		status = codeJoined
	}
	b = append(b, hosted, status)
	return append(b, w.refusal.Reason[:min(len(w.refusal.Reason), maxReason)]...)
}

// greet is the server's part of the handshake, up to the client's proof. A client
// that fails it learns only a random number.
func greet(conn io.ReadWriter, secret []byte) (*session, error) {
	hello, err := expect(conn, kindHello, helloSpan, helloSpan)
	if err != nil {
		return nil, errors.Join(err, tellVersion(conn, err))
	}
	s := &session{secret: secret}
	if err := s.bind(conn); err != nil {
		return nil, err
	}
	copy(s.hello[:], hello)
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

// tellVersion lets a client of another version read the version of this server, if that was the
// error: then the client gives up at once. The client closes the connection: a server that closed it
// with unread bytes would reset it, and the client might not read the message.
func tellVersion(conn io.ReadWriter, err error) error {
	if !errors.Is(err, errVersion) {
		return nil
	}
	if err := send(conn, kindChallenge, make([]byte, nonceSize)); err != nil {
		return err
	}
	_, err = io.CopyN(io.Discard, conn, 1<<10) // more than a hello; until the deadline of the handshake
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// welcome ends the server's part.
func (s *session) welcome(conn io.Writer, w welcome) error {
	rest := w.encode()
	return send(conn, kindWelcome, append(s.prove(roleServer, rest), rest...))
}

// send writes one frame.
func send(w io.Writer, k kind, body []byte) error {
	b := appendHeader(make([]byte, 0, headerSize+len(body)), k, len(body))
	_, err := w.Write(append(b, body...))
	return err
}

// expect reads one frame of the handshake and returns its body. It bounds the body before it
// allocates: the peer has proved nothing yet.
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
