//go:build linux

package faults

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// strangersCutOff has a host of its own connect to every port of the job. Then it vanishes,
// and leaves half-open connections.
func strangersCutOff(s *scene) {
	x := s.bed.Host("x")
	s.lan.Join(x)
	s.connectFrom(x)
	s.lan.Around(x, down)
}

// strangers connects to every port of the job from the host of the rendezvous.
func strangers(s *scene) { s.connectFrom(s.r) }

// connectFrom connects to every port of the job: some connections send garbage, and some
// nothing. All of them stay open until the test ends.
func (s *scene) connectFrom(from *hosts.Host) {
	s.Helper()
	each := 400
	if testjob.Soak() {
		each = 4000
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	for _, h := range []*hosts.Host{s.a, s.b, s.c, s.r} {
		for _, port := range s.ports(h) {
			all.Go(func() {
				for i := range each {
					conn, err := from.Dial(netip.AddrPortFrom(s.lan.Addr(h, hosts.IPv4), port))
					if err != nil {
						continue // the port's queue is full, or the test out of descriptors
					}
					if i%2 == 0 {
						_, _ = conn.Write([]byte("GET / HTTP/1.1\r\nHost: rank\r\n\r\n")) // it may be cut already
					}
					mu.Lock()
					conns = append(conns, conn)
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	require.NotEmpty(s, conns)
	s.Logf("%d strangers", len(conns))
	s.Cleanup(func() {
		for _, conn := range conns {
			conn.Close()
		}
	})
}

// ports lists the TCP ports at which processes of a host listen.
func (s *scene) ports(h *hosts.Host) (list []uint16) {
	if h == s.r { // the test listens there
		return []uint16{netip.MustParseAddrPort(s.at.Addr().String()).Port()}
	}
	table, err := h.Output("cat", "/proc/net/tcp", "/proc/net/tcp6")
	require.NoError(s, err)
	for lines := bufio.NewScanner(strings.NewReader(table)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		const listening = "0A"
		if len(fields) < 4 || fields[3] != listening {
			continue
		}
		var port uint16
		_, err := fmt.Sscanf(fields[1][strings.LastIndex(fields[1], ":")+1:], "%X", &port)
		require.NoError(s, err)
		list = append(list, port)
	}
	require.NotEmpty(s, list)
	return list
}
