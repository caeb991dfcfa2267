package pmi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// The environment of a process that a process manager started.
const (
	EnvFD    = "PMI_FD"    // the descriptor of the connection
	EnvRank  = "PMI_RANK"  // beside EnvFD
	EnvSize  = "PMI_SIZE"  // beside EnvFD
	EnvPort  = "PMI_PORT"  // host:port, in place of EnvFD
	EnvID    = "PMI_ID"    // the number of this process at EnvPort
	EnvJobID = "PMI_JOBID" // of managers that want version 2

	envSlurm = "SLURM_MPI_TYPE"
)

// Found reports whether the environment names a process manager.
func Found(lookup func(string) (string, bool)) bool {
	set := func(name string) bool {
		value, _ := lookup(name)
		return value != ""
	}
	return set(EnvFD) && set(EnvRank) && set(EnvSize) || set(EnvPort) && set(EnvID)
}

// Open begins with init over the connection that the environment names. A second Open of one
// connection fails with ErrUsed, at the process that a rank started, too. The descriptor
// stays open to the end of this process, which the manager sees by that.
func Open(ctx context.Context, lookup func(string) (string, bool)) (*Client, error) {
	s := start{version: 1}
	s.job, _ = lookup(EnvJobID)
	if slurm, _ := lookup(envSlurm); s.job != "" || slurm == "pmi2" {
		s.version = 2 // a manager ends the job of a process that asks for a version which it does not know
	}
	var raw net.Conn
	var err error
	if fd, _ := lookup(EnvFD); fd != "" {
		raw, err = inherited(lookup, &s)
	} else {
		raw, err = dial(ctx, lookup, &s)
	}
	if err != nil {
		return nil, err
	}
	c, err := begin(ctx, raw, s)
	if err != nil {
		raw.Close()
		if errors.Is(err, ErrLost) {
			err = fmt.Errorf("%w: a rank runs one program: start each program by its own srun or mpiexec, or by grun -n N", err)
		}
		return nil, fmt.Errorf("PMI: %w", err)
	}
	return c, nil
}

// number reads a variable with a number.
func number(lookup func(string) (string, bool), name string) (int, error) {
	text, _ := lookup(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, &VariableError{name, text, "want a number from 0; start the program with a process manager, or unset the variables PMI_*"}
	}
	return n, nil
}

// inherited returns the connection at EnvFD.
func inherited(lookup func(string) (string, bool), s *start) (net.Conn, error) {
	var fd int
	for _, field := range []struct {
		name string
		to   *int
	}{{EnvFD, &fd}, {EnvRank, &s.rank}, {EnvSize, &s.size}} {
		var err error
		if *field.to, err = number(lookup, field.name); err != nil {
			return nil, err
		}
	}
	// The flag says, for all processes, whether a rank has the connection. A descriptor that a
	// process inherits does not have it, and no child of this process inherits this one.
	_, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	flags := 0
	if err == nil {
		flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	}
	if err == nil && flags&unix.FD_CLOEXEC != 0 {
		return nil, ErrUsed
	}
	copied := -1
	if err == nil {
		copied, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	if err != nil {
		return nil, closed(fd, err)
	}
	file := os.NewFile(uintptr(copied), EnvFD)
	defer file.Close()
	raw, err := net.FileConn(file)
	if err != nil {
		return nil, closed(fd, err)
	}
	unix.CloseOnExec(fd)
	return raw, nil
}

// closed returns the error of a descriptor that is no connection.
func closed(fd int, err error) error {
	return &VariableError{EnvFD, strconv.Itoa(fd), fmt.Sprintf("no connection (%v): let the program that starts this one pass the descriptor on, "+
		"or unset the variables PMI_* in the environment of a program that a rank starts", err)}
}

// dial returns a connection with the manager at EnvPort.
func dial(ctx context.Context, lookup func(string) (string, bool), s *start) (net.Conn, error) {
	addr, _ := lookup(EnvPort)
	s.id, _ = lookup(EnvID)
	s.byPort = true
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, &VariableError{EnvPort, addr, fmt.Sprintf("no process manager answers (%v)", err)}
	}
	return raw, nil
}
