package fabric_test

import (
	"errors"
	goruntime "runtime"
	"sync"
	"sync/atomic"
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
	region, err := f.RegisterOrBounce(watched(t), "x", block.Memory)
	require.NoError(t, err)
	device.closes = closes
	t.Cleanup(func() { device.closes = nil }) // ahead of the fabric's Close
	return f, region, block
}

// TestCloseOfARegistrationHoldsNoOtherCallUp has calls register memory and make a stage while a provider
// waits for a stopped peer.
func TestCloseOfARegistrationHoldsNoOtherCallUp(t *testing.T) {
	for name, ends := range map[string]func(*fabric.Region) error{"of a region": (*fabric.Region).Close, "of a stage": fabric.DropStages} {
		t.Run(name, func(t *testing.T) {
			ctx, waits, over := watched(t), make(chan bool), make(chan bool)
			first := sync.OnceFunc(func() { close(waits) })
			f, region, _ := closing(t, func() error {
				first()
				<-over
				return nil
			})
			other, err := f.RegisterOrBounce(ctx, "other", driver.Memory{Bytes: make([]byte, 64)})
			require.NoError(t, err)
			require.NoError(t, fabric.OpenStage(ctx, region, 1))
			ended := make(chan error, 1)
			go func() { ended <- ends(region) }()
			<-waits
			done := make(chan error, 1)
			go func() {
				_, err := f.Register(ctx, "y", driver.Memory{Bytes: make([]byte, 64)})
				done <- errors.Join(err, fabric.OpenStage(ctx, other, 2))
			}()
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-ctx.Done():
				t.Error("a call waits for the close")
			}
			close(over)
			require.NoError(t, <-ended)
		})
	}
}

// TestCloseOfARegionWaitsForAGoroutineThatPolls has that goroutine still use memory that a message of a
// peer names.
func TestCloseOfARegionWaitsForAGoroutineThatPolls(t *testing.T) {
	var polls atomic.Bool
	f, region, _ := closing(t, func() error {
		if polls.Load() {
			return errors.New("the region closes while a goroutine polls")
		}
		return nil
	})
	ctx, release := watched(t), fabric.HoldPolling(f)
	polls.Store(true)
	closed := make(chan error, 1)
	go func() { closed <- region.Close() }()
	for fabric.Known(f, "x") && ctx.Err() == nil {
		goruntime.Gosched()
	}
	for range 1000 { // the goroutine of Close may go on
		goruntime.Gosched()
	}
	polls.Store(false)
	release()
	require.NoError(t, <-closed)
}

func TestClosesOfOneRegionHaveOneOutcome(t *testing.T) {
	waits, over := make(chan bool), make(chan bool)
	_, region, _ := closing(t, func() error {
		waits <- true
		<-over
		return errStopped
	})
	closed := make(chan error, 2)
	go func() { closed <- region.Close() }()
	<-waits
	go func() { closed <- region.Close() }()
	close(over)
	for range 2 {
		require.ErrorIs(t, <-closed, errStopped)
	}
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
		require.ErrorIs(t, region.Close(), stopped, "the second Close repeats the outcome")
		cause = nil
		require.NoError(t, f.Close())
		require.Zero(t, fabric.Stuck(f), "the fabric unpins it")
	}
}
