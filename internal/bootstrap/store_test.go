package bootstrap

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRanksOfOneHostMeetByADirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	envs := make([]Env, 3)
	type entered struct {
		conn   *Conn
		server *Server
		err    error
	}
	all := make([]entered, len(envs))
	done := make(chan int)
	for rank := range envs {
		envs[rank] = Env{Hosted: true, Store: dirStore{dir, "7"}, Rank: rank, Size: len(envs)}
		go func() {
			all[rank].conn, all[rank].server, all[rank].err = envs[rank].Enter(watchdog(t), time.Hour)
			done <- rank
		}()
	}
	for range envs {
		<-done
	}
	for rank, a := range all {
		require.NoError(t, a.err)
		require.Equal(t, rank, a.conn.Rank())
		require.Equal(t, envs[0].Secret, envs[rank].Secret)
		require.True(t, netip.MustParseAddrPort(envs[rank].Addr).Addr().IsLoopback())
		require.NoError(t, a.conn.conn.Close())
	}
	require.NoError(t, all[0].server.Close())
	for rank := range envs {
		_, _, err := (&Env{Hosted: true, Store: dirStore{dir, "7"}, Rank: rank, Size: len(envs)}).Enter(watchdog(t), time.Hour)
		var refused *RefusedError
		require.ErrorAs(t, err, &refused, rank)
		require.True(t, refused.Joined)
	}
	left, err := filepath.Glob(filepath.Join(dir, "gopgas-*"))
	require.NoError(t, err)
	require.Len(t, left, len(envs))
	for _, file := range left {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, file)
	}
}

func TestDirectoryOfOtherUsersIsAnEnvError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	var env *EnvError
	for _, d := range []string{dir, dir + "/none"} {
		_, _, err := (&Env{Hosted: true, Store: dirStore{d, "7"}, Size: 2}).Enter(watchdog(t), time.Hour)
		require.ErrorAs(t, err, &env)
		require.Contains(t, err.Error(), "mpirun -x GRUN_ADDR=HOST:7000 -x GRUN_SECRET_FILE=job.secret")
	}
}

func TestRankWithoutRankZeroInItsDirectoryIsNotStarted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	env := Env{Hosted: true, Store: dirStore{dir, "7"}, Rank: 1, Size: 2}
	_, _, err := env.Enter(watchdog(t), 50*time.Millisecond)
	var missing *MissingError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []int{0}, missing.Ranks)
}

func TestRankZeroThatCannotListenEndsTheOtherRanks(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	errs := make([]error, 3)
	var all sync.WaitGroup
	for rank := range errs {
		env := Env{Hosted: true, Store: dirStore{dir, "7"}, Rank: rank, Size: len(errs), Addr: taken.Addr().String()}
		all.Go(func() { _, _, errs[rank] = env.Enter(watchdog(t), time.Hour) })
	}
	all.Wait()
	var address *AddressError
	require.ErrorAs(t, errs[0], &address)
	for _, err := range errs[1:] {
		var host *HostError
		require.ErrorAs(t, err, &host)
		require.Equal(t, errs[0].Error(), host.Reason)
	}
}

func TestFailedCardKeepsTheReason(t *testing.T) {
	for _, reason := range []string{"", "a; b=c, d\n%", strings.Repeat("\x00", maxCard), strings.Repeat("ä", maxCard)} {
		text := failedCard(errors.New(reason))
		require.LessOrEqual(t, len(text), maxCard)
		require.False(t, strings.ContainsAny(text, " ;\n\x00"), text)
		_, err := parseCard(text)
		var host *HostError
		require.ErrorAs(t, err, &host)
		require.True(t, strings.HasPrefix(reason, strings.TrimRight(host.Reason, "?")))
	}
	_, err := parseCard(failedMark + "%")
	require.ErrorIs(t, err, errCard)
}

func TestCardKeepsWhatFits(t *testing.T) {
	full := card{secret: testSecret}
	for range 100 {
		full.addrs = append(full.addrs, "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535")
	}
	text := full.text()
	require.LessOrEqual(t, len(text), maxCard)
	back, err := parseCard(text)
	require.NoError(t, err)
	require.Equal(t, testSecret, back.secret)
	require.Greater(t, len(back.addrs), 15)
	none, err := parseCard(card{addrs: []string{"node0:7000"}}.text())
	require.NoError(t, err)
	require.Nil(t, none.secret)
	require.Nil(t, none.literal())
	for _, bad := range []string{"", "gopgas1", "gopgas1,", "gopgas1,,", "gopgas1,ab,h:1", "gopgas0,,h:1", "gopgas1,,h:0", strings.Repeat("x", maxCard+1)} {
		_, err := parseCard(bad)
		require.ErrorIs(t, err, errCard, bad)
	}
}

func TestNearAddressesComeBeforeFarOnesAndThoseOfThisHost(t *testing.T) {
	near := []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24"), netip.MustParsePrefix("172.17.0.1/16")}
	for addr, want := range map[string]int{"10.0.0.1": 0, "172.17.0.9": 0, "192.0.2.1": 1, "10.0.0.2": 2, "172.17.0.1": 2} {
		require.Equal(t, want, distance(near, netip.MustParseAddr(addr)), addr)
	}
}

func TestListenerAnywhereIsReachedAtEachOfItsAddresses(t *testing.T) {
	for _, oneHost := range []bool{true, false} {
		l, addrs, err := openAnywhere(t.Context(), oneHost)
		require.NoError(t, err)
		s := NewServer(1, testSecret, Hooks{})
		served := make(chan error, 1)
		go func() { served <- s.Serve(context.Background(), l) }()
		require.NotEmpty(t, addrs)
		for _, a := range addrs {
			_, err := Join(watchdog(t), a, testSecret, Joining{Rank: 1})
			var refused *RefusedError
			require.ErrorAs(t, err, &refused, "a rank that the job does not have")
		}
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
	}
}

func FuzzCard(f *testing.F) {
	f.Add(card{secret: testSecret, addrs: []string{"10.0.0.1:7000", "[fd00::1]:7000"}}.text())
	f.Add(failedCard(errors.New("no; way")))
	f.Add("gopgas1," + hex.EncodeToString(testSecret) + ",h:1")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCard(text)
		if err != nil {
			return
		}
		c.literal()
		back, err := parseCard(c.text())
		require.NoError(t, err)
		require.Equal(t, c, back)
	})
}
