//go:build linux

package faults

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// A scene is a job of three ranks on the hosts a, b and c, and its rendezvous on r.
type scene struct {
	*job
	bed        *hosts.Testbed
	a, b, c, r *hosts.Host
	lan        *hosts.Network
}

// A fault is a row of the tables.
type fault struct {
	name    string
	timeout time.Duration // the peer timeout of the job
	impose  func(s *scene)
	rounds  int  // of a job that survives, under the fault
	soak    bool // only with GOPGAS_SOAK=1

	// fails lists, by rank, the operations that end with an error, and kinds the
	// errors that they may have. Other operations go on, or fail likewise.
	fails map[int]string
	kinds string
	bound time.Duration // between the fault and the last of these errors, on an idle machine
}

// These are the operations, and those that meet rank 0 where a rank's pipe comes from
// another one.
const (
	every    = "put bulk atomic lock fence reduce pipe"
	ofOthers = "put bulk atomic lock fence reduce"
)

var (
	down    = hosts.Conditions{Down: true}
	healthy = hosts.Conditions{}
)

// endings are faults that end operations.
var endings = []fault{
	{name: "rank killed", timeout: 30 * time.Second, bound: time.Second, kinds: "dead",
		impose: func(s *scene) { s.signal(0, syscall.SIGKILL) },
		fails:  map[int]string{1: every, 2: ofOthers}},
	{name: "host cut off", timeout: 3 * time.Second, bound: 8 * time.Second, kinds: "unreachable launcher",
		impose: func(s *scene) { s.lan.Around(s.a, down) },
		fails:  map[int]string{0: ofOthers, 1: every, 2: ofOthers}},
	{name: "link of two hosts cut", timeout: 3 * time.Second, bound: 8 * time.Second, kinds: "unreachable broken",
		impose: func(s *scene) { s.lan.Between(s.a, s.b, down) },
		fails:  map[int]string{0: ofOthers, 1: every, 2: "fence reduce"}},
	{name: "link of two hosts cut one way", timeout: 3 * time.Second, bound: 8 * time.Second, kinds: "unreachable broken",
		impose: func(s *scene) { s.lan.OneWay(s.a, s.b, down) },
		fails:  map[int]string{0: ofOthers, 1: every, 2: "fence reduce"}},
	{name: "rendezvous cut off", timeout: 3 * time.Second, bound: 5 * time.Second, kinds: "launcher",
		impose: func(s *scene) { s.lan.Around(s.r, down) },
		fails:  map[int]string{0: ofOthers, 1: every, 2: ofOthers}},
	{name: "rendezvous half open", timeout: 3 * time.Second, bound: 5 * time.Second, kinds: "launcher",
		impose: func(s *scene) {
			for _, h := range []*hosts.Host{s.a, s.b, s.c} {
				s.lan.OneWay(h, s.r, down) // its packets still arrive
			}
		},
		fails: map[int]string{0: ofOthers, 1: every, 2: ofOthers}},
	{name: "rendezvous ended", timeout: 30 * time.Second, bound: time.Second, kinds: "launcher",
		impose: func(s *scene) { _ = s.server.Close() },
		fails:  map[int]string{0: ofOthers, 1: every, 2: ofOthers}},
}

// survivals are faults that delay a job, and change nothing in its results.
var survivals = []fault{
	{name: "every 256th packet lost", timeout: 30 * time.Second, rounds: 30, impose: everywhere(hosts.Conditions{Loss: 1.0 / 256})},
	{name: "5 percent of packets lost", timeout: 30 * time.Second, rounds: 20, impose: everywhere(hosts.Conditions{Loss: 0.05})},
	{name: "delay of 100 ms", timeout: 30 * time.Second, rounds: 4, impose: everywhere(hosts.Conditions{Delay: 100 * time.Millisecond})},
	{name: "1 MiB a second", timeout: 30 * time.Second, rounds: 4, impose: everywhere(hosts.Conditions{Rate: 1 << 20}), soak: true},
	{name: "down for 3 s", timeout: 30 * time.Second, rounds: 2, impose: pause(3 * time.Second)},
	{name: "interface unplugged for 3 s", timeout: 30 * time.Second, rounds: 2, impose: unplug(3 * time.Second)},
	{name: "down for 20 s", timeout: 60 * time.Second, rounds: 2, impose: pause(20 * time.Second), soak: true},
	{name: "rendezvous delayed by 200 ms", timeout: 3 * time.Second, rounds: 20, impose: func(s *scene) {
		s.lan.Around(s.r, hosts.Conditions{Delay: 200 * time.Millisecond})
	}},
	{name: "rank stopped for 5 s", timeout: 3 * time.Second, rounds: 2, impose: stop(5 * time.Second)},
	{name: "rank stopped for 20 s", timeout: 3 * time.Second, rounds: 2, impose: stop(20 * time.Second), soak: true},
	{name: "strangers at every port", timeout: 3 * time.Second, rounds: 10, impose: strangers},
	{name: "strangers cut off", timeout: 3 * time.Second, rounds: 10, impose: strangersCutOff},
}

func everywhere(c hosts.Conditions) func(*scene) {
	return func(s *scene) {
		for _, pair := range [][2]*hosts.Host{{s.a, s.b}, {s.b, s.c}, {s.a, s.c}, {s.a, s.r}, {s.b, s.r}, {s.c, s.r}} {
			s.lan.Between(pair[0], pair[1], c)
		}
	}
}

// pause cuts all links for a time, which is the fault.
func pause(d time.Duration) func(*scene) {
	return func(s *scene) {
		everywhere(down)(s)
		time.Sleep(d)
		everywhere(healthy)(s)
	}
}

// unplug takes the interface of a host down for a time.
func unplug(d time.Duration) func(*scene) {
	return func(s *scene) {
		s.lan.Unplug(s.b)
		time.Sleep(d)
		s.lan.Plug(s.b)
	}
}

// stop stops rank 1 for a time, which is the fault.
func stop(d time.Duration) func(*scene) {
	return func(s *scene) {
		s.signal(1, syscall.SIGSTOP)
		time.Sleep(d)
		s.signal(1, syscall.SIGCONT)
	}
}

func (s *scene) signal(rank int, sig os.Signal) { require.NoError(s, s.ranks[rank].Signal(sig)) }

// set makes a scene and waits until all operations run.
func set(t *testing.T, f fault) *scene {
	if f.soak && !testjob.Soak() {
		t.Skip("takes long: set GOPGAS_SOAK=1")
	}
	bed, lan := hosts.Star(t, 1, 4)
	on := bed.Hosts()
	s := &scene{bed: bed, a: on[0], b: on[1], c: on[2], r: on[3], lan: lan}
	s.job = start(t, spec{name: "all", place: on[:3], meet: s.r, lan: lan, family: hosts.IPv4,
		env: []string{fmt.Sprintf("GRUN_PEER_TIMEOUT=%v", f.timeout)}})
	s.ready()
	return s
}

func TestFaultEndsOperationsWithItsError(t *testing.T) {
	need(t)
	for _, f := range endings {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, f)
			began := time.Now()
			f.impose(s)
			for rank, ops := range f.fails {
				s.failures(s.ranks[rank], ops, f.kinds)
			}
			took := time.Since(began)
			t.Logf("all errors after %v", took.Round(10*time.Millisecond))
			require.Less(t, took, f.bound+testwatch.Patience(), s.log())
			s.finish()
			s.wait()
			s.leavesNothing()
		})
	}
}

// failures waits until the listed operations of a rank have failed, with errors of these
// kinds.
func (j *job) failures(r *rank, ops, kinds string) {
	j.Helper()
	open := map[string]bool{}
	for _, op := range strings.Fields(ops) {
		open[op] = true
	}
	for len(open) > 0 {
		n, ok := j.next(r)
		require.True(j, ok, "%s has ended before %v\n%s", r.name, open, j.log())
		if n.What == "round" {
			continue
		}
		require.True(j, n.has(kinds), "%s: %s is none of %s\n%s", r.name, n.Text, kinds, j.log())
		delete(open, n.What)
	}
}

// latest returns the number of the latest round of a rank.
func (j *job) latest(r *rank) (number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.news {
		require.Equal(j, "round", n.What, n.Text)
		number = n.Rank
	}
	return number
}

func TestJobSurvivesFault(t *testing.T) {
	need(t)
	for _, f := range survivals {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, f)
			f.impose(s)
			began := time.Now()
			for _, r := range s.ranks {
				last := s.latest(r)
				for number := 0; number < last+f.rounds; {
					number = s.await(r, "round").Rank
				}
			}
			t.Logf("%d rounds under the fault took %v", f.rounds, time.Since(began).Round(10*time.Millisecond))
			everywhere(healthy)(s)
			s.succeeds()
			s.leavesNothing()
		})
	}
}

// TestJobOverCutLinkEndsBeforeItBegins cuts the link of two hosts before the ranks join.
func TestJobOverCutLinkEndsBeforeItBegins(t *testing.T) {
	need(t)
	t.Parallel()
	bed, lan := hosts.Star(t, 1, 4)
	on := bed.Hosts()
	lan.Between(on[0], on[1], down)
	began := time.Now()
	j := start(t, spec{name: "all", place: on[:3], meet: on[3], lan: lan, family: hosts.IPv4, env: []string{"GRUN_PEER_TIMEOUT=3s"}})
	unreachable := 0
	for _, r := range j.ranks {
		n, ok := j.next(r)
		require.True(t, ok, j.log())
		require.Equal(t, "end", n.What, j.log())
		require.True(t, n.has("unreachable broken dead aborted closed"), "%s: %s", r.name, n.Text)
		if n.has("unreachable") {
			unreachable++
		}
	}
	t.Logf("all errors after %v", time.Since(began).Round(10*time.Millisecond))
	require.NotZero(t, unreachable, j.log())
	j.finish()
	j.wait()
	j.leavesNothing()
}
