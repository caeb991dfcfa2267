package fabric_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/loop"
)

func TestMain(m *testing.M) { testwatch.Main(m) }

// A rig holds the fabrics of some ranks. Their control messages are function calls.
type rig struct {
	mu    sync.Mutex
	ranks []*fabric.Fabric
}

var errNobody = errors.New("no fabric of that rank")

// control carries a request from one rank of the rig to another.
func (r *rig) control(from int) fabric.Control {
	return func(ctx context.Context, rank int, service string, payload []byte) ([]byte, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if rank >= len(r.ranks) || r.ranks[rank] == nil {
			return nil, errNobody
		}
		return r.ranks[rank].Serve(ctx, from, service, payload)
	}
}

// newRig opens n ranks over loop, disturbed by a plan.
func newRig(t *testing.T, n int, fmaMax int, plan faulty.Plan) *rig {
	wire := loop.New()
	return newRigOver(t, n, fmaMax, func() driver.Provider { return faulty.New(wire, plan) })
}

// newRigOver opens n ranks, each over a provider of its own.
func newRigOver(t *testing.T, n int, fmaMax int, open func() driver.Provider) *rig {
	return newRigThrough(t, n, fmaMax, open, func(next fabric.Control) fabric.Control { return next })
}

// newRigThrough opens ranks as newRigOver does, but wraps their control functions.
func newRigThrough(t *testing.T, n int, fmaMax int, open func() driver.Provider, through func(fabric.Control) fabric.Control) *rig {
	return newRigWith(t, n, fabric.Config{FMAMax: fmaMax}, open, func(_ int, next fabric.Control) fabric.Control { return through(next) })
}

// newRigWith opens ranks as newRigThrough does, with what the configuration says.
func newRigWith(t *testing.T, n int, cfg fabric.Config, open func() driver.Provider, through func(rank int, next fabric.Control) fabric.Control) *rig {
	r := &rig{}
	for rank := range n {
		cfg.Rank, cfg.Heap, cfg.Providers = rank, 1<<20, []driver.Provider{open()}
		f, err := fabric.New(t.Context(), cfg, through(rank, r.control(rank)))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		r.ranks = append(r.ranks, f)
	}
	return r
}

// region registers size bytes at a rank.
func (r *rig) region(t *testing.T, rank, size int, name string) []byte {
	block, err := r.ranks[rank].Arena().Alloc(size)
	require.NoError(t, err)
	region, err := r.ranks[rank].Register(t.Context(), name, block.Memory)
	require.NoError(t, err)
	require.Len(t, region.Bytes(), size)
	return region.Bytes()
}

// pair returns rank 0's view of a region at rank 1, and the region itself.
func pair(t *testing.T, size, fmaMax int, plan faulty.Plan) (*fabric.Remote, []byte) {
	r := newRig(t, 2, fmaMax, plan)
	mem := r.region(t, 1, size, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	require.Equal(t, size, remote.Len)
	return remote, mem
}

// told describes a put of mem and a flag.
func told(at int, mem []byte, flag fabric.Flag) *fabric.Put {
	return &fabric.Put{Body: fabric.Part{At: at, Mem: mem}, Tell: fabric.TellByFlag, Flag: flag}
}

// watched returns a context under the watchdog.
func watched(t *testing.T) context.Context {
	return testwatch.Context(t)
}
