package runtime

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
)

// RunLocalBehind is [RunLocal] with a gate between the launcher and rank 0.
func RunLocalBehind(ctx context.Context, n int, gate *Gate, body Body, opts ...Option) error {
	host := newLocalHost(n)
	defer host.server.Close() //nolint:errcheck // always nil
	errs := make([]error, n)
	var ranks sync.WaitGroup
	for rank := range n {
		p := host.place(rank)
		if direct := p.conn; rank == 0 {
			p.conn = func(ctx context.Context) (net.Conn, error) {
				conn, err := direct(ctx)
				return gate.before(conn), err
			}
		}
		ranks.Go(func() { host.runRank(ctx, p, body, opts, &errs[rank]) })
	}
	ranks.Wait()
	return errors.Join(errs...)
}

// A Gate holds back the launcher's messages to a rank about exchanges with a key
// prefix. All other messages pass.
type Gate struct {
	mu     sync.Mutex
	prefix string // "" is none
	caught chan struct{}
	frames [][]byte
	to     net.Conn
}

// Hold begins to hold messages back; it closes the channel once it holds one.
func (g *Gate) Hold(prefix string) (caught <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prefix, g.caught = prefix, make(chan struct{})
	return g.caught
}

// Open lets all messages pass: first the frames that were held back.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prefix = ""
	for _, frame := range g.frames {
		_, _ = g.to.Write(frame) // fails if the rank has closed
	}
	g.frames = nil
}

// before returns a connection to the peer of conn, through the gate.
func (g *Gate) before(conn net.Conn) net.Conn {
	ours, theirs := net.Pipe()
	g.to = theirs
	go func() {
		_, _ = io.Copy(conn, theirs)
		_ = conn.Close()
	}()
	go func() {
		for frame := readFrame(conn); frame != nil; frame = readFrame(conn) {
			g.pass(frame)
		}
		_ = theirs.Close()
	}()
	return ours
}

// readFrame returns the next frame, nil after the last.
func readFrame(conn net.Conn) []byte {
	frame := make([]byte, 8)
	if _, err := io.ReadFull(conn, frame); err != nil {
		return nil
	}
	body := make([]byte, binary.LittleEndian.Uint32(frame))
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil
	}
	return append(frame, body...)
}

// nameAt is the offset of the name in a message, behind header, rank, code, id and a
// length.
const nameAt = 8 + 4 + 1 + 8 + 2

func (g *Gate) pass(frame []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.prefix == "" || len(frame) < nameAt || !strings.HasPrefix(string(frame[nameAt:]), g.prefix) {
		_, _ = g.to.Write(frame)
		return
	}
	if g.frames = append(g.frames, frame); len(g.frames) == 1 {
		close(g.caught)
	}
}
