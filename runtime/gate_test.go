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

// RunLocalBehind is [RunLocal] where rank 0 hears of exchanges when the gate lets it.
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

// A Gate holds back what the launcher tells a rank of exchanges whose key begins with a
// prefix. Everything else passes.
type Gate struct {
	mu     sync.Mutex
	prefix string // "" is none
	caught chan struct{}
	frames [][]byte
	to     net.Conn
}

// Hold begins to hold back; the channel is closed when there is something held.
func (g *Gate) Hold(prefix string) (caught <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prefix, g.caught = prefix, make(chan struct{})
	return g.caught
}

// Open lets everything pass: first the frames that were held back.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prefix = ""
	for _, frame := range g.frames {
		_, _ = g.to.Write(frame) // fails when the rank has gone
	}
	g.frames = nil
}

// before returns a connection to what conn is connected to, by way of the gate.
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

// readFrame returns the next frame, nil behind the last.
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

// nameAt is where a message has its name, behind header, rank, code and id, and a length.
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
