package pmi

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// ranks returns clients of one server, in one version, and waits for the server at the end.
func ranks(t *testing.T, n, version int, hooks Hooks) (all []*Client, s *Server) {
	s = NewServer(make([]int, n), func(rank int) int { return rank }, hooks)
	var serving sync.WaitGroup
	for rank := range n {
		mine, theirs := net.Pipe()
		serving.Go(func() { s.Serve(rank, theirs) })
		c, err := begin(testwatch.Context(t), mine, start{version: version, rank: rank, size: n})
		require.NoError(t, err)
		t.Cleanup(func() { mine.Close() })
		all = append(all, c)
	}
	t.Cleanup(func() {
		s.Close()
		serving.Wait()
	})
	return all, s
}

func each(all []*Client, do func(c *Client) error) (errs []error) {
	errs = make([]error, len(all))
	var calls sync.WaitGroup
	for i, c := range all {
		calls.Go(func() { errs[i] = do(c) })
	}
	calls.Wait()
	return errs
}

func TestRanksGetValuesOfAllRanksBehindAFence(t *testing.T) {
	for _, version := range []int{1, 2} {
		var mu sync.Mutex
		counts := map[string]int{}
		count := func(what string) func(int) {
			return func(int) { mu.Lock(); counts[what]++; mu.Unlock() }
		}
		all, _ := ranks(t, 3, version, Hooks{Started: count("started"), Finalized: count("finalized")})
		ctx := testwatch.Context(t)
		for round := range 3 {
			for _, err := range each(all, func(c *Client) error {
				require.Equal(t, 3, c.Size())
				if err := c.Put(ctx, fmt.Sprint("key", round, "-", c.Rank()), fmt.Sprint("value=,:[]", c.Rank())); err != nil {
					return err
				}
				if err := c.Fence(ctx); err != nil {
					return err
				}
				for peer := range 3 {
					value, err := c.Get(ctx, fmt.Sprint("key", round, "-", peer))
					require.Equal(t, fmt.Sprint("value=,:[]", peer), value)
					if err != nil {
						return err
					}
				}
				_, err := c.Get(ctx, "none")
				require.ErrorIs(t, err, ErrNotFound)
				one, err := c.OneNode(ctx)
				require.True(t, one)
				return err
			}) {
				require.NoError(t, err)
			}
		}
		for _, err := range each(all, func(c *Client) error { return c.Finalize(ctx) }) {
			require.NoError(t, err)
		}
		require.Equal(t, map[string]int{"started": 3, "finalized": 3}, counts, version)
	}
}

func TestFenceFailsWhenARankDies(t *testing.T) {
	for _, version := range []int{1, 2} {
		all, s := ranks(t, 3, version, Hooks{})
		ctx := testwatch.Context(t)
		failed := make(chan error, 1)
		go func() { failed <- all[0].Fence(ctx) }()
		for in := 0; in == 0; { // rank 0 is in the fence
			s.mu.Lock()
			in = len(s.fence.in)
			s.mu.Unlock()
		}
		s.RankDied(2)
		var refused *RefusedError
		require.ErrorAs(t, <-failed, &refused)
		require.Equal(t, "rank_2_died", refused.Reason)
		require.ErrorAs(t, all[1].Fence(ctx), &refused)
	}
}

func TestEndOfARankEndsItsFenceOnly(t *testing.T) {
	s := NewServer(make([]int, 3), func(int) int { return 0 }, Hooks{})
	ctx := testwatch.Context(t)
	var served, fences []chan error
	var conns []net.Conn
	for rank := range 2 {
		mine, theirs := net.Pipe()
		done, fence := make(chan error, 1), make(chan error, 1)
		go func() { done <- s.Serve(rank, theirs) }()
		c, err := begin(ctx, mine, start{version: 1, rank: rank, size: 3})
		require.NoError(t, err)
		go func() { fence <- c.Fence(ctx) }()
		served, fences, conns = append(served, done), append(fences, fence), append(conns, mine)
	}
	for in := 0; in < 2; {
		s.mu.Lock()
		in = len(s.fence.in)
		s.mu.Unlock()
	}
	s.RankEnded(0)
	require.ErrorContains(t, <-fences[0], "rank_has_ended")
	require.NoError(t, conns[0].Close())
	require.NoError(t, <-served[0])
	require.Empty(t, fences[1], "rank 1 waits")
	s.RankDied(0)
	require.ErrorContains(t, <-fences[1], "rank_0_died")
	require.NoError(t, conns[1].Close())
	require.NoError(t, <-served[1])
}

func TestAbortReachesTheServerWithItsMessage(t *testing.T) {
	for version, want := range map[int]string{1: "1 1 ", 2: "1 1 no; more"} {
		aborted := make(chan string, 1)
		all, _ := ranks(t, 2, version, Hooks{Aborted: func(rank, code int, message string) { aborted <- fmt.Sprint(rank, " ", code, " ", message) }})
		require.NoError(t, all[1].Abort("no; \x00more"))
		require.Equal(t, want, <-aborted)
	}
}

// TestSecondProgramOfARankIsRefused has a rank begin again behind its finalize, as a script that
// runs two programs of MPI does.
func TestSecondProgramOfARankIsRefused(t *testing.T) {
	for _, version := range []int{1, 2} {
		s := NewServer(make([]int, 1), func(int) int { return 0 }, Hooks{})
		mine, theirs := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.Serve(0, theirs) }()
		ctx := testwatch.Context(t)
		first, err := begin(ctx, mine, start{version: version, size: 1})
		require.NoError(t, err)
		require.NoError(t, first.Finalize(ctx))
		_, err = begin(ctx, mine, start{version: version, size: 1})
		require.Error(t, err)
		err = <-served
		require.ErrorIs(t, err, ErrWire)
		require.ErrorContains(t, err, "rank 0: malformed PMI message: a message behind the last one: a rank runs one program of MPI")
	}
}

// TestProgramWhoseConnectionIsOverNamesTheRemedy has the manager end the connection at the finalize
// of an earlier program, as Slurm does.
func TestProgramWhoseConnectionIsOverNamesTheRemedy(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer unix.Close(pair[0])
	require.NoError(t, unix.Close(pair[1]))
	vars := map[string]string{EnvFD: strconv.Itoa(pair[0]), EnvRank: "0", EnvSize: "1"}
	_, err = Open(t.Context(), func(name string) (string, bool) { return vars[name], vars[name] != "" })
	require.ErrorIs(t, err, ErrLost)
	require.ErrorContains(t, err, "start each program by its own srun")
}

// TestValueThatNoLineCarriesIsRefusedInVersion1 has a rank that speaks version 2 put the value.
func TestValueThatNoLineCarriesIsRefusedInVersion1(t *testing.T) {
	ctx := testwatch.Context(t)
	one, s := ranks(t, 1, 1, Hooks{})
	mine, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(0, theirs) }()
	two, err := begin(ctx, mine, start{version: 2, size: 1})
	require.NoError(t, err)
	for _, value := range []string{"a b", "a\nb"} {
		_, err := two.conn.request(ctx, newMessage("kvs-put", "key", "k", "value", value), "kvs-put-response")
		require.NoError(t, err)
		got, err := two.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, value, got)
		_, err = one[0].Get(ctx, "k")
		require.ErrorIs(t, err, ErrNotFound)
	}
	require.NoError(t, two.Put(ctx, "k", "plain"))
	got, err := one[0].Get(ctx, "k")
	require.NoError(t, err, "the connection goes on")
	require.Equal(t, "plain", got)
	require.NoError(t, mine.Close())
	require.NoError(t, <-served)
}

func TestCallReturnsTheCauseOfItsContext(t *testing.T) {
	all, _ := ranks(t, 2, 1, Hooks{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := fmt.Errorf("enough")
	cancel(cause)
	require.Equal(t, cause, all[0].Fence(ctx))
}

func TestPutRefusesWhatTheProtocolCannotCarry(t *testing.T) {
	all, s := ranks(t, 1, 1, Hooks{})
	ctx := testwatch.Context(t)
	for key, value := range map[string]string{"": "x", "a b": "x", "a=b": "x", strings.Repeat("k", MaxKey+1): "x",
		"blank": "a b", "semicolon": "a;b", "line": "a\nb", "long": strings.Repeat("v", MaxValue+1)} {
		require.ErrorIs(t, all[0].Put(ctx, key, value), ErrWire, key)
	}
	require.NoError(t, all[0].Put(ctx, strings.Repeat("k", MaxKey), strings.Repeat("v", MaxValue)))
	s.stored = maxStored
	var refused *RefusedError
	require.ErrorAs(t, all[0].Put(ctx, "more", "x"), &refused)
	require.Equal(t, "key-value_space_is_full", refused.Reason)
}

// errorAfter returns the error of a client whose manager gives the responses of a text, and
// ends the connection behind the client's last request.
func errorAfter(t *testing.T, version int, responses string) error {
	mine, theirs := net.Pipe()
	go theirs.Write([]byte(responses))
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer theirs.Close()
		for all, b := "", make([]byte, 100); !strings.Contains(all, "threaded=FALSE;"); {
			n, err := theirs.Read(b)
			if err != nil {
				return
			}
			all += string(b[:n])
		}
	}()
	_, err := begin(testwatch.Context(t), mine, start{version: version, size: 1, byPort: strings.HasPrefix(responses, "cmd=initack")})
	mine.Close()
	<-read
	return err
}

func TestClientTakesLengthsPaddedAtEitherEnd(t *testing.T) {
	const first = "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"
	const body = "cmd=fullinit-response;rc=0;rank=0;size=1;"
	require.NoError(t, errorAfter(t, 2, first+fmt.Sprintf("%6d%s", len(body), body)))
	require.NoError(t, errorAfter(t, 2, first+fmt.Sprintf("%-6d%s", len(body), body)))
	require.ErrorIs(t, errorAfter(t, 2, first+"  4x  "+body), ErrWire)
	require.ErrorIs(t, errorAfter(t, 2, first+"999999"+body), ErrWire)
	require.ErrorIs(t, errorAfter(t, 2, first+" 41"), ErrLost)
}

func TestClientAtAPortTakesItsPlace(t *testing.T) {
	const rest = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=my_kvsname kvsname=k\n"
	require.NoError(t, errorAfter(t, 1, "cmd=initack rc=0\ncmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n"+rest))
	require.ErrorIs(t, errorAfter(t, 1, "cmd=initack rc=0\ncmd=set size=2\ncmd=set rank=2\ncmd=set debug=0\n"+rest), ErrWire)
	require.ErrorIs(t, errorAfter(t, 1, "cmd=initack rc=0\ncmd=set color=2\n"+rest), ErrWire)
}

func TestMappingNamesTheNodeOfEachRank(t *testing.T) {
	for text, nodes := range map[string][]int{
		"(vector,(0,1,4))":                 {0, 0, 0, 0},
		"(vector,(0,2,2))":                 {0, 0, 1, 1},
		"(vector,(0,2,1))":                 {0, 1, 0, 1, 0, 1},
		"(vector,(0,1,2),(1,2,1))":         {0, 0, 1, 2},
		"(vector,(0,2,2),(2,1,1))":         {0, 0, 1, 1, 2},
		"(vector,(1,1,1),(0,2,1),(0,1,1))": {1, 0, 1, 0},
		"(vector,(0,3,2),(0,2,1))":         {0, 0, 1, 1, 2, 2, 0, 1},
		"(vector,(0,1,1),(2,1,1))":         {0, 2},
		"(vector,(5,1,3),(0,1,1))":         {5, 5, 5, 0},
		"(vector,(0,1024,1))":              seq(1024, 1),
		"(vector,(0,64,64))":               seq(64, 64),
		"(vector,(0,1,1),(0,1,1),)":        nil,
	} {
		if nodes != nil {
			require.Equal(t, text, Mapping(nodes))
		}
		got, err := parseMapping(text, max(1, len(nodes)))
		if nodes == nil {
			require.ErrorIs(t, err, ErrWire)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, nodes, got, text)
	}
	scattered := make([]int, 5000)
	for i := range scattered {
		scattered[i] = i * i % 4001
	}
	require.Empty(t, Mapping(scattered))
}

// seq returns nodes with so many ranks each.
func seq(nodes, each int) (all []int) {
	for i := range nodes * each {
		all = append(all, i/each)
	}
	return all
}

func TestFoundNeedsAWholePlace(t *testing.T) {
	in := func(vars ...string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			for _, v := range vars {
				if key, value, _ := strings.Cut(v, "="); key == name {
					return value, true
				}
			}
			return "", false
		}
	}
	require.True(t, Found(in("PMI_FD=3", "PMI_RANK=0", "PMI_SIZE=1")))
	require.True(t, Found(in("PMI_PORT=h:1", "PMI_ID=0")))
	require.False(t, Found(in("PMI_RANK=0", "PMI_SIZE=1")))
	require.False(t, Found(in("PMI_FD=3", "PMI_SIZE=1")))
	var variable *VariableError
	for _, vars := range [][]string{{"PMI_FD=x", "PMI_RANK=0", "PMI_SIZE=1"}, {"PMI_FD=9999", "PMI_RANK=0", "PMI_SIZE=1"},
		{"PMI_FD=3", "PMI_RANK=-1", "PMI_SIZE=1"}, {"PMI_PORT=127.0.0.1:1", "PMI_ID=0"}} {
		_, err := Open(t.Context(), in(vars...))
		require.ErrorAs(t, err, &variable, vars)
	}
}
