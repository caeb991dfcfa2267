package fabric_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

var errStopped = errors.New("a peer is stopped within a request")

// closing returns a rank with one region, whose registration ends as closes says.
func closing(t *testing.T, closes func() error) (*fabric.Fabric, *fabric.Region, arena.Block) {
	device := &recorder{Provider: loop.New()}
	r := newRigOver(t, 1, 0, func() driver.Provider { return device })
	f := r.ranks[0]
	block, err := f.Arena().Alloc(64)
	require.NoError(t, err)
	region, err := f.Register(watched(t), "x", block.Memory)
	require.NoError(t, err)
	device.closes = closes
	t.Cleanup(func() { device.closes = nil }) // ahead of the fabric's Close
	return f, region, block
}

// TestCloseOfARegionHoldsNoOtherCallUp has a call register memory while a provider waits for a stopped peer.
func TestCloseOfARegionHoldsNoOtherCallUp(t *testing.T) {
	ctx, waits, over := watched(t), make(chan bool), make(chan bool)
	f, region, _ := closing(t, func() error {
		waits <- true
		<-over
		return nil
	})
	closed := make(chan error, 1)
	go func() { closed <- region.Close() }()
	<-waits
	registered := make(chan error, 1)
	go func() {
		_, err := f.Register(ctx, "y", driver.Memory{Bytes: make([]byte, 64)})
		registered <- err
	}()
	select {
	case err := <-registered:
		require.NoError(t, err)
	case <-ctx.Done():
		t.Error("Register waits for Close")
	}
	close(over)
	require.NoError(t, <-closed)
}

func TestGiveBackQuarantinesABlockThatAStoppedPeerMayChange(t *testing.T) {
	for _, stopped := range []error{nil, errStopped} {
		cause := stopped
		f, region, block := closing(t, func() error { return cause })
		region.Pin()
		used := f.Arena().Used()
		require.ErrorIs(t, f.GiveBack(region, block), stopped)
		if stopped == nil {
			require.Less(t, f.Arena().Used(), used)
			continue
		}
		require.Positive(t, f.Arena().Quarantined())
		require.Equal(t, used, f.Arena().Used())
		require.Equal(t, 1, fabric.Stuck(f))
		require.NoError(t, region.Close(), "the second Close does nothing")
		cause = nil
		require.NoError(t, f.Close())
		require.Zero(t, fabric.Stuck(f), "the fabric unpins it")
	}
}
