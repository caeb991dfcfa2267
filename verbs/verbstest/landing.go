package verbstest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// landingCases lists the promises about landings: memory that its owner opens to writes and shuts
// again.
func landingCases() []testCase {
	return []testCase{
		{"LandingsAreMadeWhereTheDeviceSaysSo", landingsAsSaid},
		{"WhatIsWrittenToALandingArrives", landingArrives},
		{"ALandingThatIsShutThrowsWritesAway", landingShut},
		{"ALandingThatIsOpenAgainKeepsOldWritesOut", landingReopened},
		{"ALandingIsShutInTheMiddleOfAWrite", landingShutAmid},
		{"WritesOutsideAnOpenLandingAreRefused", landingOutside},
		{"ALandingIsForWritesOnly", landingForWrites},
		{"AClosedLandingRefuses", landingClosed},
	}
}

// newLanding makes a landing at s. It skips the case on a device without landings.
func (s *side) newLanding() verbs.Landing {
	s.t.Helper()
	if !s.ctx.Info().Memory.Landings {
		s.t.Skip("the device has no landings")
	}
	l, err := s.ctx.NewLanding(testwatch.Context(s.t))
	require.NoError(s.t, err)
	return l
}

// landingsAsSaid compares NewLanding with DeviceInfo.
func landingsAsSaid(t *testing.T, h Harness) {
	a, _ := newStrangers(t, h)
	_, err := a.ctx.NewLanding(testwatch.Context(t))
	if a.ctx.Info().Memory.Landings {
		require.NoError(t, err)
	} else {
		require.ErrorIs(t, err, driver.ErrUnsupported)
	}
}

// landingSizes are less than a word, a word, a size that travels with the header,
// and more than a frame.
var landingSizes = [...]int{1, 8, 5000, 1<<20 + 300_000}

// landingArrives writes each landing in two halves. Shut then leaves the bytes in place.
func landingArrives(t *testing.T, h Harness) {
	a, b := newPair(t, h, withMemory(2<<20))
	l := b.newLanding()
	for round, n := range landingSizes {
		mem := make([]byte, n)
		to := l.Open(mem)
		fill(a.bytes(0, n), round)
		half := n / 2
		a.post(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, half)), Remote: to})
		a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(half, n-half)), Remote: to.Add(uint64(half))})
		a.flush(b)
		l.Shut()
		require.True(t, bytes.Equal(pattern(n, round), mem), "%d bytes differ", n)
	}
}

// landingShut writes to a landing that was shut. The write succeeds at its origin, and the owner's
// memory stays as it was. A second Shut does nothing.
func landingShut(t *testing.T, h Harness) {
	a, b := newPair(t, h, withMemory(2<<20))
	l := b.newLanding()
	for _, n := range landingSizes {
		mem := make([]byte, n)
		to := l.Open(mem)
		l.Shut()
		l.Shut()
		fill(a.bytes(0, n), 3)
		a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, n)), Remote: to})
		a.flush(b)
		require.True(t, zero(mem), "%d bytes came too late and arrived", n)
	}
}

// landingReopened opens a landing for other memory. A write by the old address must reach neither
// memory, one by the new address must arrive.
func landingReopened(t *testing.T, h Harness) {
	a, b := newPair(t, h, withMemory(2<<20))
	l := b.newLanding()
	for _, n := range landingSizes {
		old := l.Open(make([]byte, n))
		l.Shut()
		mem := make([]byte, n)
		to := l.Open(mem)
		fill(a.bytes(0, n), 4)
		a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, n)), Remote: old})
		a.flush(b)
		require.True(t, zero(mem), "%d bytes for the memory before", n)
		a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, n)), Remote: to})
		a.flush(b)
		require.True(t, bytes.Equal(pattern(n, 4), mem), "%d bytes differ", n)
		l.Shut()
	}
}

// landingShutAmid takes the memory back after some of a long write has arrived.
func landingShutAmid(t *testing.T, h Harness) {
	const n = 4 << 20
	a, b := newPair(t, h, withMemory(8<<20))
	l := b.newLanding()
	for round := range 20 {
		mem := make([]byte, n)
		fill(a.bytes(0, n), round)
		a.post(verbs.WorkRequest{ID: 5, Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, n)), Remote: l.Open(mem)})
		for range round {
			poll(t, b.scq) // moves it on
		}
		l.Shut()
		seen := bytes.Clone(mem)
		wc := a.sent()
		require.Equal(t, verbs.Success, wc.Status, "%v", wc.Err)
		a.flush(b)
		require.True(t, bytes.Equal(seen, mem), "memory changed after it was taken back")
	}
}

// poll makes progress, and wants no completion.
func poll(t *testing.T, cq *verbs.CQ) {
	t.Helper()
	var wc [1]verbs.Completion
	n, err := cq.Poll(wc[:])
	require.NoError(t, err)
	require.Zero(t, n)
}

// landingOutside writes beyond an open landing. Such a write is an error of the origin, other than
// one that comes too late.
func landingOutside(t *testing.T, h Harness) {
	for _, n := range []int{8, 5000} {
		for name, to := range map[string]func(l verbs.Landing) verbs.RemoteAddr{
			"beyond its end":        func(l verbs.Landing) verbs.RemoteAddr { return l.Open(make([]byte, n-1)) },
			"never opened":          func(l verbs.Landing) verbs.RemoteAddr { return l.Open(make([]byte, n)).Add(uint64(n)) },
			"across into the other": func(l verbs.Landing) verbs.RemoteAddr { return l.Open(make([]byte, n)).Add(1) },
		} {
			t.Run(name, func(t *testing.T) {
				a, b := newPair(t, h)
				l := b.newLanding()
				a.refusedBy(b, verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, n)), Remote: to(l)})
			})
		}
	}
}

// landingForWrites reads from a landing and adds to it, while it is open and while it is shut.
func landingForWrites(t *testing.T, h Harness) {
	for _, op := range []verbs.Opcode{verbs.OpRead, verbs.OpFetchAdd} {
		for _, shut := range []bool{false, true} {
			a, b := newPair(t, h)
			l := b.newLanding()
			to := l.Open(make([]byte, 64))
			if shut {
				l.Shut()
			}
			a.refusedBy(b, verbs.WorkRequest{Op: op, Operand: 1, Local: segs(a.at(0, 8)), Remote: to})
		}
	}
}

// landingClosed writes to a landing that was closed while it was open. Close invalidates the
// address, as that of a region.
func landingClosed(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	l := b.newLanding()
	mem := make([]byte, 5000)
	to := l.Open(mem)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	a.refusedBy(b, verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, 5000)), Remote: to})
	require.True(t, zero(mem))
}
