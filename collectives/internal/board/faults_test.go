package board

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// errBroken ends all members' waits when one member's call has failed, as a team
// does.
var errBroken = errors.New("the team is broken")

// broken calls f at each member and returns the error of each. The first error
// ends the waits of all other members.
func (r *rig) broken(t testing.TB, f func(ctx context.Context, b *Board) error) []error {
	ctx, breakTeam := context.WithCancelCause(testwatch.Context(t))
	defer breakTeam(nil)
	errs := make([]error, len(r.boards))
	var all errgroup.Group
	for m, b := range r.boards {
		all.Go(func() error {
			if errs[m] = f(ctx, b); errs[m] != nil {
				breakTeam(errBroken)
			}
			return nil
		})
	}
	_ = all.Wait()
	return errs
}

// TestDiffersNamesAMemberInAnotherCall: one member's call has another chain or
// another number; the first member that sees it names a member that differs, and
// its call.
func TestDiffersNamesAMemberInAnotherCall(t *testing.T) {
	const chain, other, odd = 11, 12, 1
	for _, n := range []int{2, 3, 5} {
		for k := range kinds {
			for _, elems := range []int{1, 20, 100} {
				for root := range 2 {
					r := newRig(t, n, tiny)
					errs := r.broken(t, func(ctx context.Context, b *Board) error {
						c := call{kind: k, root: root, elems: elems, op: operators[0]}
						s := uint64(chain)
						if b.rank == odd {
							s = other
						}
						return c.makeWith(ctx, b, 3, s, c.args(r, b.rank))
					})
					named(t, errs, odd, chain, other, fmt.Sprintf("%s of %d, %d elements, root %d", kindNames[k], n, elems, root))
				}
			}
		}
	}
}

// named requires that one member names a member that differs from it, and that
// the errors of the rest are the team's.
func named(t *testing.T, errs []error, odd int, chain, other uint64, what string) {
	t.Helper()
	found := 0
	for m, err := range errs {
		var differs *Differs
		if !errors.As(err, &differs) {
			require.True(t, err == nil || errors.Is(err, errBroken), "%s: %v", what, err)
			continue
		}
		found++
		require.Equal(t, uint64(3), differs.Seq, what)
		if m == odd {
			require.NotEqual(t, odd, differs.Member, what)
			require.Equal(t, chain, differs.Theirs, what)
		} else {
			require.Equal(t, odd, differs.Member, what)
			require.Equal(t, other, differs.Theirs, what)
		}
		require.ErrorContains(t, err, fmt.Sprintf("member %d", differs.Member))
	}
	require.Positive(t, found, what)
}

// TestDiffersNamesAMemberWithAnotherKindOfOperator: an operator of single elements has members share, where one member
// does the work for another operator. The member that differs is the root, since others that post for a root leave.
func TestDiffersNamesAMemberWithAnotherKindOfOperator(t *testing.T) {
	const chain, other, odd = 11, 12, 1
	for _, k := range []kind{allReduce, reduce} {
		with := measured(4, false)
		with.alone = with.last // so both collectives change their way there
		r := newRig(t, 4, with)
		errs := r.broken(t, func(ctx context.Context, b *Board) error {
			c, s := call{kind: k, root: odd, elems: with.last / 16, op: operators[0]}, uint64(chain)
			a := c.args(r, b.rank)
			if a.Single = b.rank != odd; !a.Single {
				s = other
			}
			return c.makeWith(ctx, b, 3, s, a)
		})
		named(t, errs, odd, chain, other, kindNames[k])
	}
}

func TestDiffersNamesAMemberInACallOfAnotherNumber(t *testing.T) {
	for _, n := range []int{2, 4} {
		r := newRig(t, n, tiny)
		errs := r.broken(t, func(ctx context.Context, b *Board) error {
			c := call{kind: allReduce, elems: 1, op: operators[0]}
			return c.makeWith(ctx, b, uint64(5+b.rank/(n-1)), 1, c.args(r, b.rank))
		})
		var differs *Differs
		require.ErrorAs(t, errors.Join(errs...), &differs)
	}
}

// TestDiffersNamesAMemberThatSkippedACall: as the root of a broadcast it posted data
// that the other members do not read, and meets them a turn later.
func TestDiffersNamesAMemberThatSkippedACall(t *testing.T) {
	r := newRig(t, 3, tiny)
	errs := r.broken(t, func(ctx context.Context, b *Board) error {
		c := call{kind: allReduce, elems: 1, op: operators[0]}
		seq := uint64(1)
		if b.rank == 2 {
			early := call{kind: broadcast, root: 2, elems: 1, op: operators[0]}
			if err := early.make(ctx, b, seq, early.args(r, b.rank)); err != nil {
				return err
			}
			seq++
		}
		return c.make(ctx, b, seq, c.args(r, b.rank))
	})
	var differs *Differs
	require.ErrorAs(t, errors.Join(errs...), &differs)
}

// TestFailedCallEndsAllCallsWithItsCause: it does not come to the
// last call, or leaves a long one when its context ends.
func TestFailedCallEndsAllCallsWithItsCause(t *testing.T) {
	for _, n := range []int{2, 5} {
		for k := range kinds {
			r := newRig(t, n, tiny)
			errs := r.broken(t, func(ctx context.Context, b *Board) error {
				c := call{kind: k, elems: 400, op: operators[0]}
				for i := range 3 {
					if err := b.one(ctx, r, i, &c); err != nil {
						return err
					}
				}
				if b.rank == n-1 {
					return errBroken
				}
				for range 100 { // members that do not wait in one call wait in a later one
					if err := c.make(ctx, b, 9, c.args(r, b.rank)); err != nil {
						again := c.make(ctx, b, 9, c.args(r, b.rank))
						if !errors.Is(again, err) {
							return fmt.Errorf("%w, then %w", err, again)
						}
						return err
					}
				}
				return nil
			})
			for m, err := range errs {
				if (k == scan || k == exScan) && m < n-2 {
					continue // they wait for room only, not for members behind them
				}
				require.ErrorIs(t, err, errBroken, "%s of %d, member %d", kindNames[k], n, m)
			}
		}
	}
}

func TestLengthErrorNamesTheMemberWithAnotherLength(t *testing.T) {
	for _, k := range []kind{gatherV, scatterV, allToAllV} {
		r := newRig(t, 3, tiny)
		errs := r.broken(t, func(ctx context.Context, b *Board) error {
			c := call{kind: k, elems: 9, op: operators[3]}
			a := c.args(r, b.rank)
			if b.rank == 2 {
				switch k {
				case gatherV:
					a.Send = a.Send[1:]
				case scatterV:
					a.Recv = a.Recv[1:]
				default:
					a.SendCounts[0]--
				}
			}
			return c.make(ctx, b, 0, a)
		})
		var length *LengthError
		require.ErrorAs(t, errors.Join(errs...), &length, kindNames[k])
		require.Equal(t, 1, max(length.Theirs-length.Mine, length.Mine-length.Theirs))
		require.ErrorContains(t, length, fmt.Sprintf("member %d", length.Member))
	}
}

// TestMemberSurvivesHostileMemory: all data of other members is random, but
// seems to belong to the call. The result is worth nothing; the member stays
// within its own memory and gets out.
func TestMemberSurvivesHostileMemory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(rt, "members")
		r := newRig(t, n, tiny).reachAll(t)
		b := r.boards[rapid.IntRange(0, n-1).Draw(rt, "member")]
		c := call{
			kind:   kind(rapid.IntRange(0, int(kinds)-1).Draw(rt, "kind")),
			root:   rapid.IntRange(0, n-1).Draw(rt, "root"),
			elems:  rapid.IntRange(0, 200).Draw(rt, "elems"),
			op:     operators[0],
			placed: rapid.SampledFrom([]int{0, -1}).Draw(rt, "placed"),
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		for m := range r.mem {
			if m != b.rank {
				r.forge(m, c, seed)
			}
		}
		b.peers[0].release.turn.Store(1 << 60)
		fill(b.peers[0].release.data[:], seed, n)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		_ = c.make(ctx, b, 0, c.args(r, b.rank))
	})
}

// forge overwrites a member's board with lines that pass for those of a call.
func (r *rig) forge(m int, c call, seed uint64) {
	fill(r.mem[m], seed, m)
	p := r.boards[0].peers[m]
	p.left.Store(seed | 1<<63)
	for i := range p.lines {
		l := &p.lines[i]
		l.turn.Store(uint64(i))
		l.seq, l.chain = 0, c.chain()
		if seed>>i&1 == 1 { // a place that is believable but for one word
			put64(l.data[:], arenaRegion)
		}
	}
}

func TestImpossibleLinesReturnErrCorrupt(t *testing.T) {
	r := newRig(t, 3, tiny).reachAll(t)
	b := r.boards[1]
	put64(b.peers[0].release.data[:], 3)
	_, err := b.writer(testwatch.Context(t))
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = b.at(0, Place{Region: arenaRegion, Offset: ^uint64(0)}.shift(8), 8)
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = b.at(0, Place{Region: arenaRegion + 1}, 8)
	require.ErrorIs(t, err, ErrCorrupt)
	b.peers[0].lines[1].turn.Store(lines + 1)
	_, err = b.see(testwatch.Context(t), 0, 1)
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestImpossibleListsReturnErrCorrupt(t *testing.T) {
	const n = 2 // length and offset for 0 and 1, the longest, region, offset
	b := newRig(t, n, tiny).reachAll(t).boards[1]
	for what, words := range map[string][2*n + 3]uint64{
		"a block longer than the longest": {0, 0, 9, 0, 8},
		"a block longer than memory":      {0, 0, 1 << 63, 0, 1 << 63},
		"an offset that wraps around":     {0, 0, 8, ^uint64(0), 8, arenaRegion, 1},
	} {
		for i, w := range words {
			list, err := b.got(0, 1, listSize(n))
			require.NoError(t, err)
			put64(list[8*i:], w)
		}
		_, err := b.look(0, 1, 8)
		require.ErrorIs(t, err, ErrCorrupt, what)
	}
}

func TestNewRefusesImpossibleConfigs(t *testing.T) {
	r := newRig(t, 2, tiny)
	good := Config{Rank: 1, Size: 2, Mem: r.mem[1], Find: r.find(1), Await: r.boards[0].await}
	_, err := newWith(good, tiny)
	require.NoError(t, err)
	for what, spoil := range map[string]func(c *Config){
		"rank":      func(c *Config) { c.Rank = 2 },
		"negative":  func(c *Config) { c.Rank = -1 },
		"size":      func(c *Config) { c.Size = 0 },
		"no find":   func(c *Config) { c.Find = nil },
		"no await":  func(c *Config) { c.Await = nil },
		"too short": func(c *Config) { c.Mem = r.mem[1][:len(r.mem[1])-1] },
		"unaligned": func(c *Config) { c.Mem = lineAligned(len(r.mem[1]) + 8)[8:] },
	} {
		c := good
		spoil(&c)
		_, err := newWith(c, tiny)
		require.Error(t, err, what)
	}
	many := Config{Size: 100, Find: good.Find, Await: good.Await}
	_, err = newWith(many, tiny)
	require.ErrorContains(t, err, "use messages")
}

func TestFitsIsTrueWhileALargeBufferHoldsAnElementPerMember(t *testing.T) {
	b := newRig(t, 4, tiny).boards[0]
	require.True(t, b.Fits(tiny.large/4))
	require.False(t, b.Fits(tiny.large/4+1))
}
