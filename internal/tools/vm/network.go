//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// maxMachines is the number of machines that a pair of sockets connects.
const maxMachines = 2

// machine is one of the machines of a run.
type machine struct {
	number int      // from 1 on a network; 0 without one
	socket *os.File // its end of the network; nil without one
}

func (m machine) name() string { return "vm" + strconv.Itoa(m.number) }

// connect returns n machines. Two are connected by a pair of sockets, which outlives an
// attempt to start one of them. Each datagram is a frame, and a full socket delays its sender.
func connect(n int) ([]machine, error) {
	if n == 1 {
		return []machine{{}}, nil
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("the network of the machines: %w", err)
	}
	var machines []machine
	for i, fd := range pair {
		machines = append(machines, machine{i + 1, os.NewFile(uintptr(fd), "network")})
	}
	return machines, nil
}

// bootAll runs the machines until the command has ended in the first, and returns its exit
// code. If another one ends before, bootAll ends them all.
func bootAll(ctx context.Context, o options, vmlinux string, image *os.File, out io.Writer) (int, error) {
	machines, err := connect(o.machines)
	if err != nil {
		return exitFailed, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	out = &lines{out: out}
	var others sync.WaitGroup
	for _, m := range machines[1:] {
		silent := o
		silent.timeout = math.MaxInt64 // it serves the first, which has the limit
		others.Go(func() {
			_, err := boot(ctx, silent, m, vmlinux, image, &tagged{m.name() + ": ", out})
			stop(fmt.Errorf("machine %s ended before the command: %w", m.name(), err))
		})
	}
	code, err := boot(ctx, o, machines[0], vmlinux, image, out)
	stop(nil)
	others.Wait()
	for _, m := range machines {
		m.socket.Close() // nil, or a socket that no machine uses any more
	}
	return code, err
}

// lines writes for several machines, one line at a time.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

// tagged begins each line with the name of its machine. A write is a line.
type tagged struct {
	tag string
	out io.Writer
}

func (t *tagged) Write(b []byte) (int, error) {
	_, err := t.out.Write(append([]byte(t.tag), b...))
	return len(b), err
}

// networkPrograms let the machines of a network reach each other by ssh.
var networkPrograms = []string{"ssh", "sshd"}

// sshSession matches the programs that newer versions of sshd run for each connection.
const sshSession = "/usr/lib/openssh/sshd-*"

// Files of ssh: all machines have the same key, which lives as long as they do.
const (
	serverConfig = `HostKey /etc/ssh/key
AuthorizedKeysFile /etc/ssh/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
SetEnv PATH=/bin:/busybox
MaxStartups 100
LogLevel ERROR
`
	clientConfig = `IdentityFile /etc/ssh/key
GlobalKnownHostsFile /etc/ssh/known
UserKnownHostsFile none
BatchMode yes
LogLevel ERROR
`
	hostNames = "10.0.0.1 vm1\n10.0.0.2 vm2\n" // as init.sh sets them
)

// network adds the files by which machines reach each other.
func (i *image) network() error {
	for _, name := range networkPrograms {
		file, err := find(name)
		if err != nil {
			return err
		}
		if err := i.withLibraries("bin/"+name, file); err != nil {
			return err
		}
	}
	sessions, err := filepath.Glob(sshSession)
	if err != nil {
		return err
	}
	for _, file := range sessions {
		if err := i.withLibraries(file[1:], file); err != nil {
			return err
		}
	}
	key, public, err := makeKey()
	if err != nil {
		return err
	}
	i.file("etc/ssh/key", 0o600, key)
	i.file("etc/ssh/key.pub", 0o644, public)
	i.file("etc/ssh/known", 0o644, append([]byte("* "), public...))
	i.file("etc/ssh/sshd_config", 0o644, []byte(serverConfig))
	i.file("etc/ssh/ssh_config", 0o644, []byte(clientConfig))
	return nil
}

// makeKey makes a key pair for ssh.
func makeKey() (key, public []byte, err error) {
	folder, err := os.MkdirTemp("", "vm-key-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // it holds a key that is of no use later
	file := filepath.Join(folder, "key")
	if _, err := outputOf(exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "vm", "-f", file)); err != nil {
		return nil, nil, err
	}
	if key, err = os.ReadFile(file); err != nil {
		return nil, nil, err
	}
	public, err = os.ReadFile(file + ".pub")
	return key, public, err
}
