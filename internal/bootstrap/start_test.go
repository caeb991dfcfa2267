package bootstrap

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// A process is one of a job without a launcher.
type process struct {
	conn   *Conn
	server *Server
	err    error
}

// handEnvs returns the places of n ranks that users start at one address.
func handEnvs(t *testing.T, n int, rank func(i int) int) []Env {
	addr := testwatch.Address(t, "127.0.0.1").String()
	envs := make([]Env, n)
	for i := range envs {
		envs[i] = Env{Hosted: true, Rank: rank(i), Size: n, Addr: addr, Secret: testSecret}
	}
	return envs
}

// enterAll enters all places at once. The end of the test closes all of them.
func enterAll(t *testing.T, envs []Env, wait time.Duration) []process {
	all := make([]process, len(envs))
	ctx := watchdog(t)
	var entering sync.WaitGroup
	for i, env := range envs {
		entering.Go(func() { all[i].conn, all[i].server, all[i].err = env.Enter(ctx, wait) })
	}
	entering.Wait()
	t.Cleanup(func() {
		for _, p := range all {
			if p.conn != nil {
				p.conn.conn.Close()
			}
			if p.server != nil {
				p.server.Close()
			}
		}
	})
	return all
}

// startAll starts the job at all processes that entered it.
func startAll(t *testing.T, all []process) (cards [][][]byte, errs []error) {
	cards, errs = make([][][]byte, len(all)), make([]error, len(all))
	ctx := watchdog(t)
	var starting sync.WaitGroup
	for i, p := range all {
		require.NoError(t, p.err)
		starting.Go(func() { cards[i], errs[i] = p.conn.Start(ctx, fmt.Append(nil, p.conn.Rank())) })
	}
	starting.Wait()
	return cards, errs
}

func TestRanksByNumberStartTogether(t *testing.T) {
	all := enterAll(t, handEnvs(t, 4, func(i int) int { return 3 - i }), time.Hour)
	cards, errs := startAll(t, all)
	for i, p := range all {
		require.NoError(t, errs[i])
		require.Equal(t, 3-i, p.conn.Rank())
		require.Equal(t, 4, p.conn.size)
		require.True(t, p.conn.hosted)
		require.Equal(t, p.conn.Rank() == 0, p.server != nil)
		require.Equal(t, [][]byte{{'0'}, {'1'}, {'2'}, {'3'}}, cards[i])
	}
}

func TestOneOfManyProcessesWithAnyRankHosts(t *testing.T) {
	all := enterAll(t, handEnvs(t, 8, func(int) int { return AnyRank }), time.Hour)
	seen := map[int]bool{}
	for _, p := range all {
		require.NoError(t, p.err)
		seen[p.conn.Rank()] = true
		require.Equal(t, p.conn.Rank() == 0, p.server != nil)
	}
	require.Len(t, seen, 8)
	_, errs := startAll(t, all)
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestStartNamesTheRanksThatAreMissing(t *testing.T) {
	envs := handEnvs(t, 8, func(i int) int { return i })
	all := enterAll(t, []Env{envs[0], envs[1], envs[3], envs[4]}, time.Hour)
	all[0].server.mu.Lock()
	all[0].server.bound(100 * time.Millisecond)
	all[0].server.mu.Unlock()
	_, errs := startAll(t, all)
	for _, err := range errs {
		var missing *MissingError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, []int{2, 5, 6, 7}, missing.Ranks)
		require.ErrorContains(t, err, "ranks 2,5-7 did not join within 100ms")
	}
	_, _, err := envs[2].Enter(watchdog(t), time.Hour)
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Reason, "too late")
}

func TestShortestStartTimeoutCounts(t *testing.T) {
	envs := handEnvs(t, 3, func(i int) int { return i })
	all := enterAll(t, envs[:1], time.Hour)
	require.NoError(t, all[0].err)
	mine, theirs := net.Pipe()
	all[0].server.Attach(theirs)
	short, err := NewConn(watchdog(t), mine, testSecret, Joining{Rank: 1, Wait: time.Millisecond})
	require.NoError(t, err)
	defer short.conn.Close()
	_, errs := startAll(t, append(all, process{conn: short}))
	for _, err := range errs {
		var missing *MissingError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, []int{2}, missing.Ranks)
	}
}

func TestRankWithoutARankZeroGetsMissingError(t *testing.T) {
	env := handEnvs(t, 2, func(int) int { return 1 })[0]
	_, _, err := env.Enter(watchdog(t), 50*time.Millisecond)
	var missing *MissingError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []int{0}, missing.Ranks)
	require.ErrorContains(t, err, "dial tcp 127.0.0.1")
}

func TestEnterWaitsForANameThatIsNotKnownYet(t *testing.T) {
	for _, rank := range []int{0, 1, AnyRank} {
		env := Env{Hosted: true, Rank: rank, Size: 2, Addr: "no-such-host.invalid:7000", Secret: testSecret}
		_, _, err := env.Enter(watchdog(t), 50*time.Millisecond)
		var missing *MissingError
		require.ErrorAs(t, err, &missing, "it tries again until then")
	}
}

func TestDeathBeforeTheStartEndsIt(t *testing.T) {
	all := enterAll(t, handEnvs(t, 3, func(i int) int { return i }), time.Hour)
	for _, p := range all {
		require.NoError(t, p.err)
	}
	require.NoError(t, all[2].conn.conn.Close())
	_, errs := startAll(t, all[:2])
	for _, err := range errs {
		var dead *PeerDeadError
		require.ErrorAs(t, err, &dead)
		require.Equal(t, 2, dead.Rank)
	}
}

func TestRankThatGivesTheStartUpSaysWhy(t *testing.T) {
	all := enterAll(t, handEnvs(t, 3, func(i int) int { return i }), time.Hour)
	for _, p := range all {
		require.NoError(t, p.err)
	}
	over, cancel := context.WithCancel(watchdog(t))
	cancel()
	_, err := all[2].conn.Start(over, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, all[2].conn.Client(Events{}).Die(watchdog(t), "no time"))
	_, errs := startAll(t, all[:2])
	for _, err := range errs {
		require.Equal(t, &PeerDeadError{Rank: 2, Cause: "no time"}, err)
	}
}

func TestEndOfRankZeroBeforeTheStartIsALostError(t *testing.T) {
	all := enterAll(t, handEnvs(t, 3, func(i int) int { return i }), time.Hour)
	for _, p := range all {
		require.NoError(t, p.err)
	}
	require.NoError(t, all[0].server.Close())
	_, errs := startAll(t, all[1:])
	for _, err := range errs {
		var lost *LostError
		require.ErrorAs(t, err, &lost)
		require.True(t, lost.Hosted)
	}
}

func TestJobsOfDifferentSizesDoNotMix(t *testing.T) {
	envs := handEnvs(t, 2, func(i int) int { return i })
	enterAll(t, envs[:1], time.Hour)
	envs[1].Size = 3
	_, _, err := envs[1].Enter(watchdog(t), time.Hour)
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Reason, "it expects a job of 3 ranks, and the job has 2")
}

func TestOneProcessTooManyIsRefused(t *testing.T) {
	envs := handEnvs(t, 2, func(int) int { return AnyRank })
	for _, p := range enterAll(t, envs, time.Hour) {
		require.NoError(t, p.err)
	}
	_, _, err := envs[0].Enter(watchdog(t), time.Hour)
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Reason, "all 2 ranks have joined")
}

func TestJobWithAnotherSecretIsRefusedAtTheSameAddress(t *testing.T) {
	envs := handEnvs(t, 2, func(i int) int { return i })
	enterAll(t, envs[:1], time.Hour)
	envs[0].Secret = bytes.Repeat([]byte{8}, SecretSize)
	envs[1].Secret = envs[0].Secret
	_, _, err := envs[0].Enter(watchdog(t), time.Hour)
	var bad *AddressError
	require.ErrorAs(t, err, &bad)
	require.True(t, bad.Taken)
	_, _, err = envs[1].Enter(watchdog(t), time.Hour)
	require.ErrorIs(t, err, ErrHandshake)
	envs[1].Rank = AnyRank
	_, _, err = envs[1].Enter(watchdog(t), time.Hour)
	require.ErrorIs(t, err, ErrHandshake)
}

// TestJobStartsAmidGarbage floods the rendezvous with hundreds of connections that send
// random bytes, or nothing, while the ranks join.
func TestJobStartsAmidGarbage(t *testing.T) {
	envs := handEnvs(t, 4, func(i int) int { return i })
	hosted := enterAll(t, envs[:1], time.Hour)
	require.NoError(t, hosted[0].err)
	ctx, stop := context.WithCancel(watchdog(t))
	var flood sync.WaitGroup
	sent := make(chan struct{}, 1)
	for range 8 {
		flood.Go(func() {
			for ctx.Err() == nil {
				conn, err := net.Dial("tcp", envs[0].Addr)
				if err != nil {
					continue
				}
				junk := make([]byte, 64)
				rand.Read(junk)
				conn.Write(junk)
				select {
				case sent <- struct{}{}:
				default:
				}
				conn.Close()
			}
		})
	}
	for range 400 {
		conn, err := net.Dial("tcp", envs[0].Addr)
		require.NoError(t, err)
		defer conn.Close()
	}
	receive(t, sent)
	all := append(hosted, enterAll(t, envs[1:], time.Hour)...)
	_, errs := startAll(t, all)
	stop()
	flood.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestDrainWaitsUntilAllHaveLeft(t *testing.T) {
	all := enterAll(t, handEnvs(t, 3, func(i int) int { return i }), time.Hour)
	clients := make([]*Client, 3)
	for i, p := range all {
		require.NoError(t, p.err)
		clients[i] = p.conn.Client(Events{})
	}
	require.NoError(t, clients[0].Close(watchdog(t)))
	over, cancel := context.WithCancel(watchdog(t))
	cancel()
	require.Equal(t, []int{1, 2}, all[0].server.Drain(over))
	drained := make(chan []int, 1)
	go func() { drained <- all[0].server.Drain(watchdog(t)) }()
	require.NoError(t, clients[1].Close(watchdog(t)))
	require.Empty(t, drained)
	require.NoError(t, clients[2].Die(watchdog(t), "enough"))
	require.Empty(t, receive(t, drained))
}

func TestEnterEndsWithItsContext(t *testing.T) {
	env := handEnvs(t, 2, func(int) int { return 1 })[0]
	ctx, cancel := context.WithTimeout(testwatch.Context(t), 50*time.Millisecond)
	defer cancel()
	_, _, err := env.Enter(ctx, time.Hour)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func FuzzWelcome(f *testing.F) {
	f.Add(welcome{rank: 1, size: 2, hosted: true}.encode())
	f.Add(welcome{rank: -1, refusal: &RefusedError{Rank: -1, Reason: "no", Joined: true}}.encode())
	f.Fuzz(func(t *testing.T, rest []byte) {
		if len(rest) < welcomeReason || len(rest) > welcomeReason+maxReason {
			return
		}
		w := decodeWelcome(rest)
		require.Equal(t, w, decodeWelcome(w.encode()))
	})
}

func FuzzHello(f *testing.F) {
	f.Add(newSession(testSecret, Joining{Rank: AnyRank, Size: 3, Wait: time.Minute}).hello[:])
	f.Fuzz(func(t *testing.T, hello []byte) {
		var s session
		copy(s.hello[:], hello)
		j := s.joining()
		require.GreaterOrEqual(t, j.Rank, AnyRank)
		require.GreaterOrEqual(t, j.Size, 0)
		require.Equal(t, j, newSession(nil, j).joining())
		server := NewServer(2, testSecret, Hooks{})
		if w := server.enter(nil, j); w.refusal == nil {
			require.Less(t, w.rank, 2)
		}
		server.Close()
	})
}
