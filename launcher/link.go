//go:build linux

package launcher

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gopgas/gopgas/launcher/internal/tunnel"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// A link is the stream of bytes to a program on another host.
type link interface {
	io.ReadWriteCloser
	Kill() // ends the command that makes the link
	Wait() tunnel.End
}

// dial runs a command of the backend on this host.
func (j *job) dial(command []string) (link, error) { return tunnel.Start(j.tunnels, command) }

// A relay is a link through the agent of another host, which runs the command.
type relay struct {
	*wire.Stream
	through *remoteAgent
	end     chan tunnel.End
}

// relay runs a command of the backend on the agent's host.
func (r *remoteAgent) relay(command []string) (link, error) {
	l := &relay{through: r, end: make(chan tunnel.End, 1)}
	r.mu.Lock()
	id := len(r.relays)
	r.relays = append(r.relays, l)
	r.mu.Unlock()
	var err error
	if l.Stream, err = r.session.Open(wire.Message{Kind: wire.KindRelay, ID: id, Command: command}); err != nil {
		return nil, err
	}
	return l, nil
}

// relayEnded hands the end of a command to its relay.
func (r *remoteAgent) relayEnded(m wire.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.ID < 0 || m.ID >= len(r.relays) {
		return
	}
	end := tunnel.End{Status: waitStatus(m), Said: m.Text}
	if m.Fault != nil {
		end.Said = m.Fault.Text
	}
	select {
	case r.relays[m.ID].end <- end:
	default:
	}
}

// Kill has the agent end the command.
func (l *relay) Kill() { l.Close() } //nolint:errcheck // the session's end is fine

// Wait waits for the command's end, or that of the agent that runs it.
func (l *relay) Wait() tunnel.End {
	select {
	case end := <-l.end:
		l.end <- end
		return end
	case <-l.through.session.Done():
		<-l.through.gone // the loss that is the cause is posted first
		return tunnel.End{Said: "host " + l.through.host.name + " was lost, through which grun reached it"}
	}
}

// maxGarbage bounds the bytes that a shell may write before the agent speaks.
const maxGarbage = 64 << 10

// A silentShell is the error of a stream that ended before the agent spoke.
type silentShell struct{ said string }

func (e *silentShell) Error() string { return "no agent spoke: " + e.said }

// greet waits for the agent at the other end of a link, and sends it its executable if
// the host has none. Lines without the mark are those of a shell's startup files.
func (j *job) greet(l link) (io.ReadWriteCloser, error) {
	r := bufio.NewReaderSize(l, maxGarbage)
	said, total := "", 0
	for {
		line, err := r.ReadSlice('\n')
		total += len(line)
		_, text, marked := strings.Cut(string(line), mark(j.self.hash))
		switch {
		case marked && strings.TrimSpace(text) == "agent":
			return struct {
				io.Reader
				io.WriteCloser
			}{r, l}, nil
		case marked && strings.TrimSpace(text) == "need":
			io.Copy(struct{ io.Writer }{l}, j.self.bytes()) //nolint:errcheck // the shell says why it does not read
			total = 0
		case marked:
			return nil, refusalOf(strings.TrimSpace(text))
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, &silentShell{said + string(line)}
		case total >= maxGarbage:
			return nil, fmt.Errorf("its shell writes without end before grun's agent runs, such as %.60q: let its startup files write only in interactive shells", said+string(line))
		default:
			said = string(line)
		}
	}
}

// refusalOf turns a line of the script into an error.
func refusalOf(text string) error {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "machine":
		return fmt.Errorf("its machine is %s, another one than this grun's: start the job on a machine like the hosts", rest)
	case "full":
		return fmt.Errorf("no room for grun (%s): make room there, or set XDG_CACHE_HOME there to a directory with room", rest)
	case "nowhere":
		return fmt.Errorf("no directory of %s can hold a program: set XDG_CACHE_HOME or TMPDIR there to a directory that lets programs run", rest)
	}
	return fmt.Errorf("its shell says %q", text)
}
