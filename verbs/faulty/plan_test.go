package faulty

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

func TestPlanWithoutFaultsHandsOutTheWrappedProvidersContext(t *testing.T) {
	ctx, err := New(loop.New(), Plan{Seed: 7}).Open(testwatch.Context(t), "loop0", driver.Options{})
	require.NoError(t, err)
	_, faulty := ctx.(*device)
	require.False(t, faulty)
	require.NoError(t, ctx.Close())
}

func TestNameAndDevicesAreTheWrappedProviders(t *testing.T) {
	p := New(loop.New(), Plan{DelayStarts: 1})
	require.Equal(t, "loop", p.Name())
	devices, err := p.Devices(testwatch.Context(t))
	require.NoError(t, err)
	want, err := loop.New().Devices(testwatch.Context(t))
	require.NoError(t, err)
	want[0].Memory.Maps = false // stores would go around the faults
	require.Equal(t, want, devices)
}

func TestNonsenseInAPlanIsRefusedByOpen(t *testing.T) {
	for name, plan := range map[string]Plan{
		"chance above 1":      {DelayStarts: 1.5},
		"chance below 0":      {Reorder: -0.1},
		"chance not a number": {QueueFull: math.NaN()},
		"negative delay":      {MaxDelay: -1},
		"negative polls":      {MaxPolls: -1},
		"contradiction":       {KeepMapper: true, HideMapper: true},
		"endless stall":       {Stall: Stall{Every: 1}},
		"negative stall":      {Stall: Stall{Every: -1, For: time.Second}},
		"error of success":    {Errors: []Error{{Request: 1, Status: driver.Success}}},
		"unknown status":      {Errors: []Error{{Request: 1, Status: 200}}},
		"error at request 0":  {Errors: []Error{{Status: driver.RemoteAccess}}},
		"cut at request 0":    {Cuts: []Cut{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(loop.New(), plan).Open(testwatch.Context(t), "loop0", driver.Options{})
			require.ErrorIs(t, err, driver.ErrInvalid)
			require.ErrorContains(t, err, "faulty plan")
		})
	}
}

func TestPlanHidesCapabilities(t *testing.T) {
	for name, c := range map[string]struct {
		plan                     Plan
		maps, cancels, allWidths bool
	}{
		"nothing planned":      {Plan{}, true, true, true},
		"faults hide mappings": {Plan{DelayStarts: 0.5}, false, true, true},
		"unless they are kept": {Plan{DelayStarts: 0.5, KeepMapper: true}, true, true, true},
		"mappings alone":       {Plan{HideMapper: true}, false, true, true},
		"canceling alone":      {Plan{HideCanceler: true}, true, false, true},
		"wide atomics alone":   {Plan{HideExtendedAtomics: true}, true, true, false},
		"everything":           {Plan{HideMapper: true, HideCanceler: true, HideExtendedAtomics: true}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(loop.New(), c.plan)
			devices, err := p.Devices(testwatch.Context(t))
			require.NoError(t, err)
			require.Equal(t, c.allWidths, devices[0].Atomics.Extended)
			ctx, err := p.Open(testwatch.Context(t), "loop0", driver.Options{})
			require.NoError(t, err)
			defer ctx.Close()
			require.Equal(t, c.allWidths, ctx.Info().Atomics.Extended)
			cq, err := ctx.CreateCQ(testwatch.Context(t), 4)
			require.NoError(t, err)
			qp, err := ctx.CreateQP(testwatch.Context(t), driver.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 1, RecvDepth: 1})
			require.NoError(t, err)
			_, maps := qp.(driver.Mapper)
			_, cancels := qp.(driver.Canceler)
			require.Equal(t, c.maps, maps)
			require.Equal(t, c.cancels, cancels)
		})
	}
}

func TestHiddenAtomicsAreRefusedEvenWhenPosted(t *testing.T) {
	wire := loop.New()
	p := New(wire, Plan{HideExtendedAtomics: true})
	ctx, err := p.Open(testwatch.Context(t), "loop0", driver.Options{})
	require.NoError(t, err)
	defer ctx.Close()
	cq, err := ctx.CreateCQ(testwatch.Context(t), 4)
	require.NoError(t, err)
	qp, err := ctx.CreateQP(testwatch.Context(t), driver.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 1, RecvDepth: 1})
	require.NoError(t, err)
	for _, s := range []driver.State{driver.StateInit, driver.StateRTR, driver.StateRTS} {
		require.NoError(t, qp.Modify(testwatch.Context(t), s, driver.Attr{Peer: qp.Address()})) // connected to itself
	}
	n, err := qp.PostSend([]driver.WorkRequest{{Op: driver.OpAtomic, Atomic: driver.AtomicAdd, Width: 4}})
	require.Zero(t, n)
	require.ErrorIs(t, err, driver.ErrUnsupported)
}
