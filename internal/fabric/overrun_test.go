package fabric_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

// shallow opens a provider whose completion queues hold few completions. The provider
// reports that, or it does not.
type shallow struct {
	driver.Provider
	depth int
	says  int
}

func (s shallow) Open(ctx context.Context, device string, opts driver.Options) (driver.Context, error) {
	inner, err := s.Provider.Open(ctx, device, opts)
	return shallowContext{inner, s}, err
}

type shallowContext struct {
	driver.Context
	s shallow
}

func (c shallowContext) Info() driver.DeviceInfo {
	info := c.Context.Info()
	info.MaxCQDepth = c.s.says
	return info
}

func (c shallowContext) CreateCQ(ctx context.Context, depth int) (driver.CQ, error) {
	return c.Context.CreateCQ(ctx, min(depth, c.s.depth))
}

// reads has rank 0 start n reads ahead of waiting for any.
func reads(t *testing.T, s shallow, n int) (errs []error) {
	wire := loop.New()
	r := newRigOver(t, 2, 0, func() driver.Provider { return shallow{wire, s.depth, s.says} })
	r.region(t, 1, 8, "x")
	ctx := watched(t)
	remote, err := r.ranks[0].Resolve(ctx, 1, "x")
	require.NoError(t, err)
	var requests []fabric.Request
	for range n {
		req, err := remote.StartRead(ctx, 0, make([]byte, 8))
		errs = append(errs, err)
		requests = append(requests, req)
	}
	for _, req := range requests {
		errs = append(errs, req.Wait(ctx))
	}
	return errs
}

func TestOperationsNeverOverrunTheCompletionQueue(t *testing.T) {
	for _, err := range reads(t, shallow{depth: 16, says: 16}, 100) {
		require.NoError(t, err)
	}
}

// TestLostCompletionsReturnErrOverrun tries until the queue loses completions. For
// that the provider must run ahead of the goroutine that polls.
func TestLostCompletionsReturnErrOverrun(t *testing.T) {
	for ctx, failed := watched(t), 0; failed == 0; {
		require.NoError(t, ctx.Err(), "none was lost")
		for _, err := range reads(t, shallow{depth: 16, says: 1024}, 100) {
			if err != nil {
				require.ErrorIs(t, err, driver.ErrOverrun)
				failed++
			}
		}
	}
}
