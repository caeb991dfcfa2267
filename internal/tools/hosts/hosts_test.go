//go:build linux

package hosts

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// transfer sends size bytes from one host to another over TCP.
func transfer(t *testing.T, lan *Network, from, to *Host, family Family, size int) time.Duration {
	t.Helper()
	l, err := to.Listen(lan.Addr(to, family))
	require.NoError(t, err)
	defer l.Close()
	began := time.Now()
	conn, err := from.Dial(netip.MustParseAddrPort(l.Addr().String()))
	require.NoError(t, err)
	go func() {
		_, _ = conn.Write(make([]byte, size)) // the receiver counts
		conn.Close()
	}()
	in, err := l.Accept()
	require.NoError(t, err)
	defer in.Close()
	got, err := io.Copy(io.Discard, in)
	require.NoError(t, err)
	require.EqualValues(t, size, got)
	return time.Since(began)
}

func TestHostsReachEachOther(t *testing.T) {
	b, lan := Star(t, 1, 2)
	for _, family := range []Family{IPv4, IPv6} {
		t.Log(transfer(t, lan, b.Hosts()[0], b.Hosts()[1], family, 8<<20))
	}
	require.Greater(t, lan.Sent(b.Hosts()[0], b.Hosts()[1]).Bytes, uint64(16<<20))
}

func TestHostHasItsOwnNameProcessesAndSharedMemory(t *testing.T) {
	b, _ := Star(t, 1, 2)
	for _, h := range b.Hosts() {
		out, err := h.Output("sh", "-c", "cat /proc/sys/kernel/hostname; touch /dev/shm/$(cat /proc/sys/kernel/hostname); ls /dev/shm; ls -d /proc/[0-9]* | wc -l; getent ahosts b >/dev/null && echo found")
		require.NoError(t, err)
		lines := strings.Fields(out)
		require.Equal(t, []string{h.Name(), h.Name()}, lines[:2])
		require.Less(t, lines[2], "9", "the host sees its own processes only")
		require.Equal(t, "found", lines[len(lines)-1])
	}
}

func TestLinkDelaysDropsAndLimits(t *testing.T) {
	b, lan := Star(t, 1, 3)
	a, c := b.Hosts()[0], b.Hosts()[1]
	lan.Between(a, c, Conditions{Delay: 20 * time.Millisecond})
	require.GreaterOrEqual(t, transfer(t, lan, a, c, IPv4, 1), 40*time.Millisecond, "a handshake is a round trip")
	lan.Between(a, c, Conditions{Rate: 10 << 20})
	require.GreaterOrEqual(t, transfer(t, lan, a, c, IPv4, 2<<20), 150*time.Millisecond)
	lan.Between(a, c, Conditions{Loss: 0.05})
	before := lan.Sent(a, c).Dropped
	transfer(t, lan, a, c, IPv4, 4<<20)
	require.Greater(t, lan.Sent(a, c).Dropped, before)
}

func TestLinkThatIsDownDropsWithoutReset(t *testing.T) {
	b, lan := Star(t, 1, 2)
	a, c := b.Hosts()[0], b.Hosts()[1]
	l, err := c.Listen(lan.Addr(c, IPv4))
	require.NoError(t, err)
	defer l.Close()
	conn, err := a.Dial(netip.MustParseAddrPort(l.Addr().String()))
	require.NoError(t, err)
	defer conn.Close()
	in, err := l.Accept()
	require.NoError(t, err)
	defer in.Close()
	lan.Around(c, Conditions{Down: true})
	_, err = conn.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, in.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	_, err = in.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	lan.Around(c, Conditions{})
	require.NoError(t, in.SetReadDeadline(time.Time{}))
	_, err = in.Read(make([]byte, 1))
	require.NoError(t, err, "TCP sends again")
}

func TestLinkWithNoConnectCarriesConnectionsOfTheOtherDirectionOnly(t *testing.T) {
	b, lan := Star(t, 1, 2)
	inner, outer := b.Hosts()[0], b.Hosts()[1]
	lan.OneWay(outer, inner, Conditions{NoConnect: true})
	for _, family := range []Family{IPv4, IPv6} {
		transfer(t, lan, inner, outer, family, 1<<10)
		l, err := inner.Listen(lan.Addr(inner, family))
		require.NoError(t, err)
		defer l.Close()
		dropped := lan.Sent(outer, inner).Dropped
		err = outer.Do(func() error {
			_, err := net.DialTimeout("tcp", l.Addr().String(), 200*time.Millisecond)
			return err
		})
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout(), err)
		require.Eventually(t, func() bool { return lan.Sent(outer, inner).Dropped > dropped }, testwatch.Patience(), time.Millisecond,
			"a busy switch reads the frame later")
	}
}

// TestFilesListsWhileFilesVanish lists the files of a folder, below which a program makes and removes folders.
func TestFilesListsWhileFilesVanish(t *testing.T) {
	b, _ := Star(t, 1, 1)
	h := b.Hosts()[0]
	require.NoError(t, h.Do(func() error { return os.WriteFile(TempDir+"/stays", nil, 0o600) }))
	_, err := h.Start(exec.Command("sh", "-c", `while :; do mkdir -p "$0/a/b/c/d"; echo >"$0/a/b/c/d/f"; rm -r "$0/a"; done`, TempDir))
	require.NoError(t, err)
	for range testwatch.Rounds(500) {
		files, err := h.Files(TempDir)
		require.NoError(t, err)
		require.Contains(t, files, TempDir+"/stays")
	}
}

func TestRunningListsProcessesThatKillEnds(t *testing.T) {
	b, _ := Star(t, 1, 1)
	h := b.Hosts()[0]
	sleeper, err := h.Start(exec.Command("sleep", "1000"))
	require.NoError(t, err)
	var running map[int]string
	require.Eventually(t, func() bool { // in the midst of execve a process has no command line
		running, err = h.Running()
		return err == nil && slices.Equal([]string{"sleep 1000"}, slices.Collect(maps.Values(running)))
	}, testwatch.Patience(), time.Millisecond)
	for number := range running {
		require.NoError(t, h.Kill(number, syscall.SIGKILL))
	}
	require.ErrorContains(t, sleeper.Wait(), "killed")
}

func TestUnpluggedInterfaceIsDown(t *testing.T) {
	b, lan := Star(t, 1, 2)
	a := b.Hosts()[0]
	state := func() string {
		out, err := a.Output("ip", "-br", "link", "show", "eth0")
		require.NoError(t, err)
		return out
	}
	require.NotContains(t, state(), "DOWN")
	lan.Unplug(a)
	require.Contains(t, state(), "DOWN")
	lan.Plug(a)
	require.NotContains(t, state(), "DOWN")
}

func TestEndOfTestEndsHostsAndTheirProcesses(t *testing.T) {
	var sleeper *Process
	t.Run("testbed", func(t *testing.T) {
		b, _ := Star(t, 1, 1)
		var err error
		sleeper, err = b.Hosts()[0].Start(exec.Command("sleep", "1000"))
		require.NoError(t, err)
	})
	if sleeper == nil {
		t.Skip("no testbed")
	}
	require.ErrorContains(t, sleeper.Wait(), "killed")
}

// envVictim makes the test binary the process that TestKilledTestLeavesNothing kills.
const envVictim = "GOPGAS_HOSTS_VICTIM"

func TestVictim(t *testing.T) {
	if os.Getenv(envVictim) == "" {
		t.Skip("runs for TestKilledTestLeavesNothing only")
	}
	b, _ := Star(t, 1, 2)
	h := b.Hosts()[1]
	_, err := h.Start(exec.Command("sleep", "1000"))
	require.NoError(t, err)
	fmt.Printf("victim %d\n", h.first.Process.Pid)
	select {}
}

func TestKilledTestLeavesNothing(t *testing.T) {
	if err := lacks("ip"); err != nil {
		unable(t, err)
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	victim := exec.Command(exe, "-test.run", "^TestVictim$")
	victim.Env = append(os.Environ(), envVictim+"=1", "TMPDIR="+t.TempDir()) // the kernel removes no files
	out, err := victim.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, victim.Start())
	var pid int
	_, err = fmt.Fscanf(out, "victim %d\n", &pid)
	require.NoError(t, err)
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	require.NoError(t, err)
	require.NoError(t, victim.Process.Kill())
	_ = victim.Wait() // killed
	for running(namespace) {
		time.Sleep(10 * time.Millisecond) // no event tells of a grandchild's end; go test bounds the loop
	}
}

// running reports whether a process is in a network namespace.
func running(namespace string) bool {
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && name == namespace {
			return true
		}
	}
	return false
}

func TestSSHRunsCommandsOnOtherHosts(t *testing.T) {
	b, _ := Star(t, 1, 3)
	config := b.SSH()
	for _, h := range b.Hosts()[1:] {
		for _, port := range []string{"22", "2222"} {
			out, err := b.Hosts()[0].Output("ssh", "-F", config, "-p", port, h.Name(), "cat /proc/sys/kernel/hostname; echo $HOME $TMPDIR")
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%s\n%s %s\n", h.Name(), HomeDir, TempDir), out)
		}
	}
}

func TestHostsOfConcurrentTestbedsDoNotMeet(t *testing.T) {
	first, lan := Star(t, 1, 1)
	second, _ := Star(t, 1, 1)
	l, err := first.Hosts()[0].Listen(lan.Addr(first.Hosts()[0], IPv4))
	require.NoError(t, err)
	defer l.Close()
	_, err = second.Hosts()[0].Dial(netip.MustParseAddrPort(l.Addr().String()))
	var refused *net.OpError
	require.ErrorAs(t, err, &refused)
}

func TestThreadsOfTheTestDoNotStayInAHost(t *testing.T) {
	b, _ := Star(t, 1, 1)
	inside := ""
	for range 100 {
		require.NoError(t, b.Hosts()[0].Do(func() (err error) {
			inside, err = os.Readlink("/proc/1/ns/net") // /proc is the host's
			return err
		}))
	}
	main, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", os.Getpid()))
	require.NoError(t, err)
	require.NotEmpty(t, inside)
	require.NotEqual(t, inside, main)
}
