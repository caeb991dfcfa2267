//go:build linux

package runtime_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/tcp"
)

// loopback4 is 127.0.0.1 as /proc/net/tcp writes it.
const loopback4 = "0100007F"

func TestRanksOfOneHostListenOnTheLoopbackInterfaceOnly(t *testing.T) {
	for _, c := range []testjob.Config{
		{Provider: "tcp", Ranks: 3},
		{Provider: "auto", Ranks: 3, Hosts: "aab"}, // the hosts are one machine all the same
	} {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			r.NoError(r.World.Barrier(ctx))
			at := listening(r)
			r.NotEmpty(at)
			for _, address := range at {
				r.Equal(loopback4, address)
			}
			r.NoError(r.World.Barrier(ctx))
		})
	}
}

func TestRanksListenOnNamedInterface(t *testing.T) {
	lo, err := net.InterfaceByIndex(1)
	require.NoError(t, err)
	for iface, want := range map[string]string{lo.Name: loopback4, "127.0.0.0/8": loopback4, "127.0.0.2": "0200007F"} {
		c := testjob.Config{Provider: "tcp", Ranks: 2}
		body := func(ctx context.Context, r *testjob.Rank) {
			r.NoError(r.World.Barrier(ctx))
			for _, address := range listening(r) {
				r.Equal(want, address, iface)
			}
			r.NoError(r.World.Barrier(ctx))
		}
		c.Run(t, body, runtime.WithIface(iface))
		t.Setenv("GRUN_IFACE", iface)
		c.Run(t, body)
	}
}

func TestMissingInterfaceErrorListsInterfaces(t *testing.T) {
	_, err := runtime.Init(t.Context(), runtime.WithProvider("tcp"), runtime.WithIface("no-such-interface"))
	var none *tcp.InterfaceError
	require.ErrorAs(t, err, &none)
	require.ErrorContains(t, err, `no interface or address "no-such-interface"`)
	require.ErrorContains(t, err, "127.0.0.1/8")
}

// listening returns the addresses at which this process listens, as the kernel writes
// them.
func listening(r *testjob.Rank) (addresses []string) {
	mine := map[string]bool{}
	open, err := os.ReadDir("/proc/self/fd")
	r.NoError(err)
	for _, entry := range open {
		name, _ := os.Readlink("/proc/self/fd/" + entry.Name()) // closed since
		mine[name] = true
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue // a kernel without IPv6
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			const local, state, inode, listen = 1, 3, 9, "0A"
			f := strings.Fields(lines.Text())
			if len(f) > inode && f[state] == listen && mine[fmt.Sprintf("socket:[%s]", f[inode])] {
				address, _, _ := strings.Cut(f[local], ":")
				addresses = append(addresses, address)
			}
		}
		r.NoError(file.Close())
	}
	return addresses
}
