//go:build linux

package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Kind is the type of a message.
type Kind uint8

// Messages from grun to an agent.
const (
	KindPlan   Kind = iota + 1 // Plan
	KindGo                     // start the ranks
	KindSignal                 // Signal, to all ranks
	KindEnd                    // the job is over
	KindPing                   // both ways: do you answer?
	KindPong                   // both ways

	// Messages from an agent to grun.
	KindReady      // the agent can run its ranks
	KindRefused    // it cannot: Fault
	KindStarted    // every rank runs its program
	KindNotStarted // Rank does not run: Fault
	KindExited     // Rank, Status
	KindFinalError // Rank, Text
	KindErrorsRead // no rank sends a final error any more
	KindGone       // no process of the job is left on the host
	KindRelayEnded // ID, Status, Text: the end of a relayed command

	// The first message of a stream.
	KindControl // Bound
	KindStdin   // Rank
	KindStdout  // Rank
	KindStderr  // Rank
	KindProgram // Rank: number of the program; Size bytes follow
	KindRelay   // ID, Command

	// The first message of a stream that the agent opens.
	KindRendezvous // a connection of a rank to the rendezvous
	KindManager    // Rank: its connection with the process manager
	kindEnd
)

// A Message is one frame of a stream. The kind says which fields have a meaning.
type Message struct {
	Kind    Kind     `json:"-"`
	Rank    int      `json:"rank,omitempty"`
	Signal  int      `json:"signal,omitempty"`
	Status  uint32   `json:"status,omitempty"` // a syscall.WaitStatus
	Text    string   `json:"text,omitempty"`
	ID      int      `json:"id,omitempty"`
	Size    int64    `json:"size,omitempty"`
	Command []string `json:"command,omitempty"`
	// Bound is the peer timeout: that of silence.
	Bound time.Duration `json:"bound,omitempty"`
	Fault *Fault        `json:"fault,omitempty"`
	Plan  *Plan         `json:"plan,omitempty"`
}

// A Fault is an error on its way to grun.
type Fault struct {
	Program string `json:"program,omitempty"` // that could not be started
	Code    int    `json:"code"`              // the exit code for it
	Text    string `json:"text"`
}

// A Plan tells an agent what to run.
type Plan struct {
	JobID    string    `json:"job"`
	Secret   []byte    `json:"secret"`
	Size     int       `json:"size"` // ranks of the job
	Host     string    `json:"host"` // name of the agent's host in this job
	Addr     string    `json:"addr"` // of the rendezvous, as the ranks reach it
	Programs []Program `json:"programs"`
	Ranks    []Rank    `json:"ranks"`
	Env      Strings   `json:"env"` // NAME=value, on top of the host's own
	Dir      string    `json:"dir"` // working directory; "": the agent's
	Bind     int       `json:"bind"`
	Crowd    bool      `json:"crowd"` // any number of ranks, by --oversubscribe
	Guardian bool      `json:"guardian"`
	Managed  bool      `json:"managed"` // a resource manager signals the ranks when it signals the agent
	Errors   bool      `json:"errors"`  // ranks send their final errors
	Stdout   bool      `json:"stdout"`  // ranks have streams for it; else it is /dev/null
	Stderr   bool      `json:"stderr"`
}

// A Program is an executable on the agent's host.
type Program struct {
	Name   string  `json:"name"` // argv[0]
	Path   string  `json:"path"` // absolute, or a name that the agent looks up
	Args   Strings `json:"args"`
	Env    Strings `json:"env"`
	Staged bool    `json:"staged"` // a stream brings it
}

// Strings are strings of any bytes. JSON itself replaces bytes that are not UTF-8.
type Strings []string

// MarshalJSON implements json.Marshaler.
func (s Strings) MarshalJSON() ([]byte, error) {
	list := make([][]byte, len(s))
	for i := range s {
		list[i] = []byte(s[i])
	}
	return json.Marshal(list)
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Strings) UnmarshalJSON(text []byte) error {
	var list [][]byte
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*s = nil
	for _, b := range list {
		*s = append(*s, string(b))
	}
	return nil
}

// A Rank is a rank that the agent runs.
type Rank struct {
	Rank    int  `json:"rank"`
	Program int  `json:"program"`
	Stdin   bool `json:"stdin"` // it has a stream for it
}

// MaxMessage bounds the body of a frame in bytes.
const MaxMessage = 16 << 20

const (
	offLength  = 0
	offMagic   = 4
	offVersion = 6
	offKind    = 7
	headerSize = 8

	magic   = 0x4147 // "GA"
	version = 1
)

// ErrWire: the bytes are no message.
var ErrWire = errors.New("bytes that are no message of grun or its agents")

// Write writes m as one frame, in one call of Write.
func Write(w io.Writer, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(body) > MaxMessage && m.Kind == KindPlan {
		return fmt.Errorf("the plan of the host takes %d bytes where %d are allowed: give it fewer ranks, or programs with fewer arguments and variables",
			len(body), MaxMessage)
	}
	if len(body) > MaxMessage {
		return fmt.Errorf("%w: %d bytes where %d are allowed", ErrWire, len(body), MaxMessage)
	}
	b := make([]byte, 0, headerSize+len(body))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = binary.LittleEndian.AppendUint16(b, magic)
	b = append(b, version, byte(m.Kind))
	_, err = w.Write(append(b, body...))
	return err
}

// Read reads one frame and no byte behind it.
func Read(r io.Reader) (m Message, err error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return m, err
	}
	n := binary.LittleEndian.Uint32(h[offLength:])
	m.Kind = Kind(h[offKind])
	switch {
	case binary.LittleEndian.Uint16(h[offMagic:]) != magic:
		return m, fmt.Errorf("%w: wrong magic", ErrWire)
	case h[offVersion] != version:
		return m, fmt.Errorf("%w: version %d, not %d", ErrWire, h[offVersion], version)
	case m.Kind == 0 || m.Kind >= kindEnd:
		return m, fmt.Errorf("%w: kind %d", ErrWire, m.Kind)
	case n > MaxMessage:
		return m, fmt.Errorf("%w: %d bytes where %d are allowed", ErrWire, n, MaxMessage)
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return m, err
	}
	if len(body) < int(n) {
		return m, io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("%w: %w", ErrWire, err)
	}
	return m, nil
}

// Check reports whether every number of the plan has its object.
func (p *Plan) Check() error {
	for _, r := range p.Ranks {
		if r.Rank < 0 || r.Rank >= p.Size || r.Program < 0 || r.Program >= len(p.Programs) {
			return fmt.Errorf("%w: rank %d of %d, program %d of %d", ErrWire, r.Rank, p.Size, r.Program, len(p.Programs))
		}
	}
	return nil
}
