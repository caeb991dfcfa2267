package bootstrap

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestRendezvousListensAtEachAddressOfLocalhost(t *testing.T) {
	addr := fmt.Sprintf("localhost:%d", testwatch.Address(t, "127.0.0.1").Port())
	all, err := resolve(watchdog(t), addr)
	require.NoError(t, err)
	listeners, err := openListeners(watchdog(t), addr)
	require.NoError(t, err)
	defer closeAll(listeners)
	require.Len(t, listeners, len(all))
	for i, l := range listeners {
		require.Equal(t, all[i].String(), l.Addr().String())
	}
}

func TestRendezvousListensEverywhereForANameOfTheLoopbackInterface(t *testing.T) {
	name, err := os.Hostname()
	require.NoError(t, err)
	addrs, err := net.DefaultResolver.LookupNetIP(watchdog(t), "ip", name)
	if err != nil {
		t.Skipf("this host does not know its name: %v", err)
	}
	loopback := true
	for _, a := range addrs {
		loopback = loopback && a.Unmap().IsLoopback()
	}
	list, err := places(watchdog(t), net.JoinHostPort(name, "7"))
	require.NoError(t, err)
	if loopback {
		require.Equal(t, []string{":7"}, list)
	} else {
		require.NotContains(t, list, ":7")
	}
}

func TestAddressErrorSaysWhetherThePortIsTakenOrElsewhere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var bad *AddressError
	_, err = openListeners(watchdog(t), l.Addr().String())
	require.ErrorAs(t, err, &bad)
	require.True(t, bad.Taken)
	require.ErrorContains(t, err, "another process listens there")
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	_, err = openListeners(watchdog(t), ":"+port)
	require.ErrorAs(t, err, &bad)
	require.True(t, bad.Taken, "one address is enough")
	_, err = openListeners(watchdog(t), "203.0.113.77:7000") // for documents only: no host has it
	require.ErrorAs(t, err, &bad)
	require.False(t, bad.Taken)
	require.ErrorContains(t, err, "not of this host")
}

func TestSplitRefusesWhatIsNoAddress(t *testing.T) {
	for _, addr := range []string{"", "h", "h:", "h:0", "h:65536", "h:http", "::1:7", "[::1]"} {
		_, _, err := split(addr)
		require.ErrorIs(t, err, errAddress, addr)
	}
	host, port, err := split("[fe80::1%eth0]:7")
	require.NoError(t, err)
	require.Equal(t, "fe80::1%eth0", host)
	require.EqualValues(t, 7, port)
	require.Equal(t, "[::1]:7", hostPort("::1", "7"))
	require.Equal(t, "[::1]:7", hostPort("[::1]", "7"))
	require.Equal(t, "h:7", hostPort("h", "7"))
}

// TestJoinTriesAllAddresses has a stranger at the first address of localhost.
func TestJoinTriesAllAddresses(t *testing.T) {
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer stranger.Close()
	go func() {
		for conn, err := stranger.Accept(); err == nil; conn, err = stranger.Accept() {
			conn.Write([]byte("220 mail.example.org ESMTP\r\n"))
			conn.Close()
		}
	}()
	port := stranger.Addr().(*net.TCPAddr).AddrPort().Port()
	second, err := net.Listen("tcp", netip.AddrPortFrom(netip.IPv6Loopback(), port).String())
	if err != nil {
		t.Skipf("no second address: %v", err)
	}
	defer second.Close()
	addr := "localhost:" + strconv.Itoa(int(port))
	if all, err := resolve(watchdog(t), addr); err != nil || len(all) < 2 {
		t.Skipf("localhost has %v, %v", all, err)
	}
	s := newServer(t, 1, Hooks{})
	s.wg.Go(func() { s.Serve(context.Background(), second) })
	c, err := Join(watchdog(t), addr, testSecret, Joining{Rank: 0})
	require.NoError(t, err)
	require.NoError(t, c.Client(Events{}).Close(watchdog(t)))
}
