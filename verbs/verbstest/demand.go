package verbstest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

func demandCases() []testCase {
	return []testCase{
		{"MemoryIsCommittedAheadOfItsUse", committedAhead},
		{"RequestForWhichMemoryLacksIsRefused", memoryLacks},
		{"RefusedAccessCommitsNothing", refusedCommits},
		{"RegistrationWithoutMemoryFails", registrationLacks},
		{"ExtentIsMadeAheadOfItsUse", extentMade},
		{"AccessThatIsInNoExtentIsRefused", extentRefused},
		{"ExtentsThatCannotBeMadeAreRefused", extentsInvalid},
	}
}

// errLacks stands for a host without memory.
var errLacks = errors.New("no memory")

// demanded is the length of regions with a Demand, and present that of their first part.
const demanded, present = 64 << 10, 4 << 10

// onDemand registers memory of b of which only the first part is present. Commit calls commit.
func (s *side) onDemand(commit func(n int) error) (*verbs.MR, error) {
	mem := s.h.NewMemory(s.t, demanded)
	mem.Demand = verbs.Demand{Present: present, Commit: commit}
	return s.pd.RegMR(testwatch.Context(s.t), mem, verbs.AllAccess)
}

// needDemand skips a case unless the device commits memory on demand.
func needDemand(t *testing.T, s *side) {
	t.Helper()
	if !s.ctx.Info().Memory.OnDemand {
		t.Skip("the device needs all memory at registration")
	}
}

// accesses returns a request of each kind for 8 bytes or more up to end, which b's region has.
func (s *side) accesses(mr *verbs.MR, end int) map[string]verbs.WorkRequest {
	at, eight := mr.Remote(end-8), segs(s.at(0, 8))
	all := map[string]verbs.WorkRequest{
		"short WRITE": {Op: verbs.OpWrite, Local: eight, Remote: at},
		"long WRITE":  {Op: verbs.OpWrite, Local: segs(s.at(0, end-present/2)), Remote: mr.Remote(present / 2)},
		"READ":        {Op: verbs.OpRead, Local: eight, Remote: at},
		"FETCH_ADD":   {Op: verbs.OpFetchAdd, Operand: 1, Local: eight, Remote: at},
	}
	if s.ctx.Info().Atomics.Extended {
		all["ACCUMULATE"] = verbs.WorkRequest{Op: verbs.OpAccumulate, Atomic: verbs.AtomicAdd, Width: 8, Local: eight, Remote: at}
	}
	if s.ctx.Info().Blocks {
		runs := []verbs.Run{{At: 4 - end, Block: 4, Count: 1}, {At: -4, Block: 4, Count: 1}}
		all["WRITE_BLOCKS"] = verbs.WorkRequest{Op: verbs.OpWriteBlocks, Runs: runs, Local: eight, Remote: mr.Remote(end)}
	}
	return all
}

// committedAhead counts the calls by which a region on demand gets its memory. The device calls
// commit once for each new end, ahead of the access. A device that cannot wait commits all of it at
// registration.
func committedAhead(t *testing.T, h Harness) {
	var committed []int
	commit := func(n int) error { committed = append(committed, n); return nil }
	names, _ := newStrangers(t, h, withMemory(demanded))
	mr, err := names.onDemand(commit)
	require.NoError(t, err)
	if !names.ctx.Info().Memory.OnDemand {
		require.Equal(t, []int{demanded}, committed)
		return
	}
	for name := range names.accesses(mr, demanded) {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t, h, withMemory(demanded))
			committed = nil
			mr, err := b.onDemand(commit)
			require.NoError(t, err)
			a.do(a.accesses(mr, present)[name])
			require.Empty(t, committed, "that part was there")
			for _, end := range []int{present + 8, present + 16, 5 * present, demanded - 8, demanded} {
				a.do(a.accesses(mr, end)[name])
			}
			require.Equal(t, []int{2 * present, 5 * present, demanded - 8, demanded}, committed)
		})
	}
}

// memoryLacks has the commit of a region fail. Each kind of access then fails at its origin, and
// the target's memory stays as it was.
func memoryLacks(t *testing.T, h Harness) {
	names, _ := newStrangers(t, h, withMemory(demanded))
	needDemand(t, names)
	for name := range names.accesses(names.mr, demanded) {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t, h, withMemory(demanded))
			mr, err := b.onDemand(func(int) error { return errLacks })
			require.NoError(t, err)
			wr := a.accesses(mr, present+8)[name]
			fill(a.bytes(0, demanded), 3)
			wr.Flags = verbs.Signaled
			a.post(wr)
			require.Equal(t, verbs.RemoteOperation, a.sent().Status)
			require.True(t, zero(mr.Bytes()), "the target's memory changed")
		})
	}
}

func refusedCommits(t *testing.T, h Harness) {
	a, b := newPair(t, h, withMemory(demanded))
	needDemand(t, a)
	mr, err := b.onDemand(func(n int) error { panic("commits memory for a request that it refuses") })
	require.NoError(t, err)
	a.post(verbs.WorkRequest{Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 8)), Remote: mr.Remote(demanded - 7)})
	require.Equal(t, verbs.RemoteAccess, a.sent().Status)
}

func registrationLacks(t *testing.T, h Harness) {
	a, _ := newStrangers(t, h)
	if a.ctx.Info().Memory.OnDemand {
		t.Skip("the device commits memory later")
	}
	_, err := a.onDemand(func(int) error { return errLacks })
	require.ErrorIs(t, err, errLacks)
}

// withExtents registers memory of b with two extents. The first one is made once. There is no memory for the second.
func (s *side) withExtents(first verbs.Memory) (mr *verbs.MR, made *int, err error) {
	made = new(int)
	mem := s.h.NewMemory(s.t, present)
	mem.Behind = verbs.Extents{Count: 2, Each: demanded, Make: func(extent int) (verbs.Memory, error) {
		if extent > 0 {
			return verbs.Memory{}, errLacks
		}
		*made++
		return first, nil
	}}
	mr, err = s.pd.RegMR(testwatch.Context(s.t), mem, verbs.AllAccess)
	return mr, made, err
}

// extentMade writes to the first extent, at its two ends, and reads from it. Devices without demand refuse extents.
func extentMade(t *testing.T, h Harness) {
	a, b := newPair(t, h, withMemory(demanded))
	first := h.NewMemory(t, demanded)
	mr, made, err := b.withExtents(first)
	if !a.ctx.Info().Memory.OnDemand {
		require.ErrorIs(t, err, driver.ErrUnsupported)
		return
	}
	require.NoError(t, err)
	fill(a.bytes(0, demanded), 3)
	a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: mr.Remote(0)})
	require.Zero(t, *made, "the write was to the region's bytes")
	a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, present)), Remote: mr.Remote(present)})
	a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(8, 8)), Remote: mr.Remote(present + demanded - 8)})
	a.do(verbs.WorkRequest{Op: verbs.OpFetchAdd, Operand: 1, Local: segs(a.at(present, 8)), Remote: mr.Remote(present + present)})
	a.do(verbs.WorkRequest{Op: verbs.OpRead, Local: segs(a.at(16, 8)), Remote: mr.Remote(present + present)})
	a.flush(b)
	require.Equal(t, 1, *made)
	require.Equal(t, a.bytes(24, present-24), first.Bytes[24:present])
	require.Equal(t, a.bytes(8, 8), first.Bytes[demanded-8:])
	require.Equal(t, []byte{1, 0, 0, 0, 0, 0, 0, 0}, a.bytes(16, 8))
}

// extentsInvalid registers extents of no bytes, and some that have no function.
func extentsInvalid(t *testing.T, h Harness) {
	_, b := newPair(t, h, withMemory(demanded))
	lacks := func(int) (verbs.Memory, error) { return verbs.Memory{}, errLacks }
	for _, behind := range []verbs.Extents{{Count: 1, Make: lacks}, {Count: 1, Each: demanded}} {
		mem := b.h.NewMemory(t, present)
		mem.Behind = behind
		_, err := b.pd.RegMR(testwatch.Context(t), mem, verbs.AllAccess)
		require.ErrorIs(t, err, driver.ErrInvalid)
	}
}

func extentRefused(t *testing.T, h Harness) {
	names, _ := newStrangers(t, h, withMemory(demanded))
	needDemand(t, names)
	const second, end = present + demanded, present + 2*demanded
	for name, c := range map[string]struct {
		at, bytes int
		status    verbs.Status
	}{
		"across the beginning": {present - 8, 16, verbs.RemoteAccess},
		"across two extents":   {second - 8, 16, verbs.RemoteAccess},
		"behind the last":      {end, 8, verbs.RemoteAccess},
		"without memory":       {second, 8, verbs.RemoteOperation},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t, h, withMemory(demanded))
			mr, _, err := b.withExtents(h.NewMemory(t, demanded))
			require.NoError(t, err)
			a.post(verbs.WorkRequest{Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, c.bytes)), Remote: mr.Remote(c.at)})
			require.Equal(t, c.status, a.sent().Status)
		})
	}
}
