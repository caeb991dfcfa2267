package rpipe_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A busyProvider is one of whose peers is stopped within a request while stopped is set: no memory
// region closes without an error.
type busyProvider struct {
	driver.Provider
	stopped atomic.Bool
}

func (p *busyProvider) Open(ctx context.Context, device string, opts driver.Options) (driver.Context, error) {
	c, err := p.Provider.Open(ctx, device, opts)
	return &busyContext{c, p}, err
}

type busyContext struct {
	driver.Context
	p *busyProvider
}

func (c *busyContext) RegMR(ctx context.Context, mem driver.Memory, a driver.Access) (driver.MR, error) {
	mr, err := c.Context.RegMR(ctx, mem, a)
	return &busyMR{mr, c.p}, err
}

type busyMR struct {
	driver.MR
	p *busyProvider
}

var errBusyMR = errors.New("a peer does not finish its request")

func (m *busyMR) Close() error {
	err := m.MR.Close()
	if m.p.stopped.Load() {
		err = errors.Join(err, errBusyMR)
	}
	return err
}

// TestMemoryOfStoppedPeerIsQuarantined closes a pipe of a team while the device reports a request
// that no peer finishes, and frees the team. The heap does not hand the memory of the pipe's ends to
// a later owner.
func TestMemoryOfStoppedPeerIsQuarantined(t *testing.T) {
	p := &busyProvider{}
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		member, a := *r, team.Of(r.World).Arena()
		before := a.Used()
		var err error
		member.World, err = r.World.Split(ctx, 0, 0)
		r.NoError(err)
		l := &pipetest.Loopback{Ctx: ctx, R: &member}
		l.Open(rpipe.WithHeap(1 << 20)) // too large for a slab
		opened := a.Used()
		p.stopped.Store(true)
		l.Close()
		p.stopped.Store(false)
		quarantined := a.Quarantined()
		r.GreaterOrEqual(quarantined, int64(1<<20))
		r.Equal(opened, a.Used())
		r.NoError(member.World.Free(ctx))
		r.Equal(quarantined, a.Quarantined(), "Free of the team has released memory")
		r.GreaterOrEqual(a.Used(), before+quarantined)
	}, runtime.WithWrap(func(inner driver.Provider) driver.Provider { p.Provider = inner; return p }))
}
