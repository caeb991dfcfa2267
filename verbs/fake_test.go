package verbs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

var errDevice = errors.New("the device said no")

// moody wraps loop with a device that refuses calls on demand.
type moody struct {
	driver.Provider
	devices func() ([]driver.DeviceInfo, error)
	opts    driver.Options
	refuse  map[string]bool
	take    int // requests that a post takes before it refuses
}

func newMoody() *moody { return &moody{Provider: loop.New(), refuse: map[string]bool{}} }

func (m *moody) Devices(ctx context.Context) ([]driver.DeviceInfo, error) {
	if m.devices != nil {
		return m.devices()
	}
	return m.Provider.Devices(ctx)
}

func (m *moody) Open(ctx context.Context, device string, opts driver.Options) (driver.Context, error) {
	m.opts = opts
	c, err := m.Provider.Open(ctx, device, opts)
	return &moodyContext{c, m}, err
}

func (m *moody) no(call string) error {
	if m.refuse[call] {
		return errDevice
	}
	return nil
}

type moodyContext struct {
	driver.Context
	m *moody
}

func (c *moodyContext) RegMR(ctx context.Context, mem driver.Memory, a driver.Access) (driver.MR, error) {
	if err := c.m.no("RegMR"); err != nil {
		return nil, err
	}
	return c.Context.RegMR(ctx, mem, a)
}

func (c *moodyContext) CreateCQ(ctx context.Context, depth int) (driver.CQ, error) {
	if err := c.m.no("CreateCQ"); err != nil {
		return nil, err
	}
	return c.Context.CreateCQ(ctx, depth)
}

func (c *moodyContext) CreateQP(ctx context.Context, cfg driver.QPConfig) (driver.QP, error) {
	if err := c.m.no("CreateQP"); err != nil {
		return nil, err
	}
	q, err := c.Context.CreateQP(ctx, cfg)
	return &moodyQP{q, c.m}, err
}

// moodyQP has no optional interfaces.
type moodyQP struct {
	driver.QP
	m *moody
}

func (q *moodyQP) Modify(ctx context.Context, to driver.State, attr driver.Attr) error {
	if err := q.m.no("Modify " + to.String()); err != nil {
		return err
	}
	return q.QP.Modify(ctx, to, attr)
}

func (q *moodyQP) PostSend(wrs []driver.WorkRequest) (int, error) {
	if err := q.m.no("PostSend"); err != nil {
		n, _ := q.QP.PostSend(wrs[:min(q.m.take, len(wrs))])
		return n, err
	}
	return q.QP.PostSend(wrs)
}

func (q *moodyQP) PostRecv(wrs []driver.RecvRequest) (int, error) {
	if err := q.m.no("PostRecv"); err != nil {
		n, _ := q.QP.PostRecv(wrs[:min(q.m.take, len(wrs))])
		return n, err
	}
	return q.QP.PostRecv(wrs)
}

// rig is a context with one QP that is connected to itself.
type rig struct {
	m   *moody
	ctx *verbs.Context
	pd  *verbs.PD
	cq  *verbs.CQ
	qp  *verbs.QP
	mr  *verbs.MR
}

func newRig(t *testing.T, opts verbs.Options) *rig {
	t.Helper()
	r := &rig{m: newMoody()}
	var err error
	r.ctx, err = verbs.Open(t.Context(), r.m, "", opts)
	require.NoError(t, err)
	r.pd, err = r.ctx.AllocPD()
	require.NoError(t, err)
	r.cq, err = r.ctx.CreateCQ(t.Context(), 64)
	require.NoError(t, err)
	r.mr, err = r.pd.RegMR(t.Context(), verbs.Memory{Bytes: make([]byte, 256)}, verbs.AllAccess)
	require.NoError(t, err)
	r.qp = r.newQP(t)
	require.NoError(t, r.qp.Connect(t.Context(), r.qp.Address(), time.Second))
	return r
}

func (r *rig) newQP(t *testing.T) *verbs.QP {
	t.Helper()
	qp, err := r.pd.CreateQP(t.Context(), r.config())
	require.NoError(t, err)
	return qp
}

func (r *rig) config() verbs.QPConfig {
	return verbs.QPConfig{SendCQ: r.cq, RecvCQ: r.cq, SendDepth: 4, RecvDepth: 4}
}

func (r *rig) write(t *testing.T) verbs.WorkRequest {
	t.Helper()
	seg, err := r.mr.Segment(0, 8)
	require.NoError(t, err)
	return verbs.WorkRequest{Op: verbs.OpWrite, Flags: verbs.Signaled, Local: []verbs.Segment{seg}, Remote: r.mr.Remote(64)}
}

func (r *rig) poll(t *testing.T, want int) []verbs.Completion {
	t.Helper()
	wc := make([]verbs.Completion, 32)
	n, err := r.cq.Poll(wc)
	require.NoError(t, err)
	require.Equal(t, want, n)
	return wc[:n]
}
