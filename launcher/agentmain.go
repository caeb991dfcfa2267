//go:build linux

package launcher

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/launcher/internal/agent"
)

// errNotForUsers: a user has typed grun agent.
var errNotForUsers = errors.New("grun itself starts its agents on the hosts of a job; write grun -H host1:2,host2:2 PROG")

// AgentMain runs the agent of this host for a grun on another host, at the other end of
// standard input and output. It returns once no process of the job is left here. A
// program whose Specs have other hosts calls it when its arguments are agent HASH.
func AgentMain(args []string) error {
	if len(args) != 1 || isTerminal(os.Stdin) {
		return errNotForUsers
	}
	// A grun that is gone must not kill the agent before it has swept.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, unix.SIGPIPE)
	defer signal.Stop(broken)
	conn := stdio()
	if _, err := fmt.Fprintln(conn, mark(args[0])+"agent"); err != nil {
		return err
	}
	return agent.Serve(conn)
}

// stdio returns standard input and output as one stream, whose Close ends a Read.
func stdio() io.ReadWriteCloser {
	for fd := range 2 {
		unix.SetNonblock(fd, true) //nolint:errcheck // then Close does not end a Read
	}
	in, out := os.NewFile(0, "stdin"), os.NewFile(1, "stdout")
	return &files{in, out}
}

// A files is the pair of descriptors that an agent speaks by, as one connection.
type files struct{ in, out *os.File }

func (f *files) Read(b []byte) (int, error)  { return f.in.Read(b) }
func (f *files) Write(b []byte) (int, error) { return f.out.Write(b) }
func (f *files) Close() error                { return errors.Join(f.in.Close(), f.out.Close()) }
