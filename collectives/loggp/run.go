package loggp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// A Call is a collective call of all ranks, from root 0, on a vector or on blocks of one length.
// With Repeat, all ranks make it that often, one call after the other.
type Call struct {
	Collective string // as Collectives returns it
	Algorithm  string // as Algorithms returns it
	Bytes      int    // of the longest buffer: the whole vector, or the blocks of all ranks
	Repeat     int    // 0: once
}

// A Result is the cost of a call.
type Result struct {
	Time         time.Duration // until the last rank returns
	Messages     int64         // of all ranks
	Bytes        int64         // of these messages
	Among        int64         // messages between hosts
	MostMessages int           // that one rank sends
	MostScratch  int           // bytes of memory that one rank takes beside its buffers
}

// Collectives returns the names of the collectives.
func Collectives() []string {
	var names []string
	for c := message.Broadcast; c <= message.ExScan; c++ {
		names = append(names, c.String())
	}
	return names
}

// Algorithms returns the names of the algorithms by which a machine can make a call with an
// operator that commutes. Kind: local.
func Algorithms(m *Machine, collective string) []string {
	var names []string
	if c, ok := message.Named(collective); ok {
		for _, al := range message.Algorithms(c) {
			if m.fits(&al) {
				names = append(names, al.Name)
			}
		}
	}
	return names
}

// fits reports whether a machine can run an algorithm.
func (m *Machine) fits(al *message.Algorithm) bool {
	switch {
	case al.Needs&message.EvenSize != 0 && m.Ranks%2 != 0 && m.Ranks > 1:
		return false
	case al.Needs&message.HostMap != 0:
		return m.PerHost > 1 && m.hosts() > 1 && (al.Needs&message.EqualBlocks == 0 || m.Ranks%m.PerHost == 0)
	}
	return true
}

// Run replays a call. trace, if it is not nil, gets all messages, in the order of virtual
// time. Kind: local; it runs in the caller's goroutine and takes about 10 KiB for each rank.
func Run(m *Machine, c Call, trace func(Message)) (Result, error) {
	if err := m.check(); err != nil {
		return Result{}, err
	}
	family, al, err := m.find(c)
	if err != nil {
		return Result{}, err
	}
	memory := newMemory(m, family, c.Bytes)
	if al.Needs&message.HostMap != 0 {
		memory.hosts = hostsOf(m, c.Bytes)
	}
	s := newReplay(m, func(ctx context.Context, r *rank) error {
		return replayRank(ctx, r, c, &al, memory)
	})
	s.trace = trace
	if err := s.run(); err != nil {
		return Result{}, err
	}
	for i := range s.ranks {
		s.result.Time = max(s.result.Time, time.Duration(s.ranks[i].clock))
		s.result.MostScratch = max(s.result.MostScratch, s.ranks[i].scratch)
	}
	return s.result, nil
}

// find returns the collective and the algorithm of a call. The error says why m cannot make it.
func (m *Machine) find(c Call) (message.Collective, message.Algorithm, error) {
	family, _ := message.Named(c.Collective)
	al, ok := message.Find(family, c.Algorithm)
	var err error
	switch {
	case !ok || family.String() != c.Collective:
		err = fmt.Errorf("%s by %q: %w; there are the algorithms %s", c.Collective, c.Algorithm, ErrMachine, strings.Join(Algorithms(m, c.Collective), ", "))
	case !m.fits(&al):
		err = fmt.Errorf("%s by %s with %d ranks, %d on a host: %w", c.Collective, c.Algorithm, m.Ranks, m.PerHost, ErrMachine)
	case c.Bytes < 0 || c.Bytes > MostBytes || blocks(family) && c.Bytes%m.Ranks != 0:
		err = fmt.Errorf("%d bytes for %d ranks: %w; want blocks of one length, at most %d bytes together", c.Bytes, m.Ranks, ErrMachine, MostBytes)
	}
	return family, al, err
}

// replayRank runs a rank's part of a call. It returns errMemory if the algorithm takes more memory than a
// rank may have, which the transport reports by a panic.
func replayRank(ctx context.Context, r *rank, c Call, al *message.Algorithm, memory *memory) (err error) {
	defer func() {
		if failed := recover(); failed == errMemory { //nolint:errorlint // this package panicked with this very value
			err = errMemory
		} else if failed != nil {
			panic(failed)
		}
	}()
	for range max(c.Repeat, 1) {
		r.clock += r.replay.machine.PerCall
		if err := al.Run(ctx, r, memory.args(r)); err != nil {
			return err
		}
	}
	return nil
}

// blocks reports whether a collective's longest buffer holds a block for each rank.
func blocks(c message.Collective) bool {
	return slices.Contains([]message.Collective{message.Gather, message.Scatter, message.AllGather, message.ReduceScatter, message.AllToAll}, c)
}
