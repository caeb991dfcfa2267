//go:build linux

package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// EnvRequire makes tests fail that would skip for lack of root or a program.
const EnvRequire = "GOPGAS_HOSTS"

// A Testbed holds the hosts and networks of a test. One goroutine at a time may add to it.
type Testbed struct {
	t        testing.TB
	seed     uint64
	dir      string // files of the hosts
	hosts    []*Host
	networks []*Network
	files    sync.Mutex // guards the hosts' tables of names
}

// New returns a testbed without hosts, which the end of the test removes. seed decides
// which frames a lossy link drops.
func New(t testing.TB, seed uint64) *Testbed {
	t.Helper()
	if err := lacks("ip"); err != nil {
		unable(t, err)
	}
	b := &Testbed{t: t, seed: seed, dir: t.TempDir()}
	t.Cleanup(b.close)
	return b
}

// Star returns a testbed of n hosts named a, b, c and so on, on one network.
func Star(t testing.TB, seed uint64, n int) (*Testbed, *Network) {
	t.Helper()
	b := New(t, seed)
	lan := b.Network(IPv4 | IPv6)
	for i := range n {
		lan.Join(b.Host(string(rune('a' + i))))
	}
	return b, lan
}

// Hosts returns the hosts in the order of their creation.
func (b *Testbed) Hosts() []*Host { return b.hosts }

// lacks returns the requirement that this machine does not meet, or nil.
func lacks(programs ...string) error {
	if os.Geteuid() != 0 {
		return errors.New("needs root, to make namespaces")
	}
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("needs the kernel's TUN driver: %w", err)
	}
	tun.Close()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("needs %s of a Debian package iproute2, openssh, munge or slurm: %w", program, err)
		}
	}
	return nil
}

// unable skips the test, or fails it where hosts are required.
func unable(t testing.TB, err error) {
	t.Helper()
	if os.Getenv(EnvRequire) == "1" {
		t.Fatalf("hosts: %v", err)
	}
	t.Skipf("hosts: %v", err)
}

// must fails the test for an error of the machine.
func (b *Testbed) must(err error, format string, args ...any) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("hosts: %s: %v", fmt.Sprintf(format, args...), err)
	}
}

// close ends all networks and hosts. The test calls it at its end.
func (b *Testbed) close() {
	for _, n := range b.networks {
		n.close()
	}
	for _, h := range b.hosts {
		h.close()
	}
}

// writeNames writes the table of names that all hosts share, /etc/hosts.
func (b *Testbed) writeNames() {
	b.files.Lock()
	defer b.files.Unlock()
	var table strings.Builder
	table.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for _, h := range b.hosts {
		for _, p := range h.ports {
			for _, a := range p.addrs {
				fmt.Fprintf(&table, "%s %s\n", a.Addr(), h.name)
			}
		}
	}
	b.must(os.WriteFile(b.namesFile(), []byte(table.String()), fs.FileMode(0o644)), "writing names")
}

func (b *Testbed) namesFile() string { return filepath.Join(b.dir, "hosts") }
