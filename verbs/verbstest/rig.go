package verbstest

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// config sizes a rig.
type config struct {
	depth, cqDepth, segments int
	memory                   int
	access                   verbs.Access // rights to b's memory
}

// An option changes what newPair and newStrangers make.
type option func(*config)

func withDepth(n int) option           { return func(c *config) { c.depth = n } }
func withCQDepth(n int) option         { return func(c *config) { c.cqDepth = n } }
func withMemory(n int) option          { return func(c *config) { c.memory = n } }
func withAccess(a verbs.Access) option { return func(c *config) { c.access = a } }

// side is one end of a connection.
type side struct {
	t    *testing.T
	h    Harness
	cfg  config
	ctx  *verbs.Context
	bell *wait.Bell
	pd   *verbs.PD
	scq  *verbs.CQ
	rcq  *verbs.CQ
	qp   *verbs.QP
	mr   *verbs.MR

	events chan verbs.AsyncEvent
	early  []verbs.Completion // polled from scq while posting

	offered int           // receives posted for notices
	posts   atomic.Uint64 // calls of post: a watchdog's steps
}

// newPair returns two connected ends.
func newPair(t *testing.T, h Harness, opts ...option) (a, b *side) {
	t.Helper()
	a, b = newStrangers(t, h, opts...)
	connect(t, a.qp, b.qp)
	return a, b
}

// newStrangers returns two ends that are not connected yet.
func newStrangers(t *testing.T, h Harness, opts ...option) (a, b *side) {
	t.Helper()
	cfg := config{depth: 16, cqDepth: 256, segments: 4, memory: 64 << 10, access: verbs.AllAccess}
	for _, o := range opts {
		o(&cfg)
	}
	pa, pb := h.New(t)
	if h.Wrap != nil {
		same := pa == pb
		pa = h.Wrap(pa)
		if same {
			pb = pa
		} else {
			pb = h.Wrap(pb)
		}
	}
	bAccess := cfg.access
	cfg.access = verbs.AllAccess
	a = newSide(t, h, pa, cfg)
	cfg.access = bAccess
	b = newSide(t, h, pb, cfg)
	return a, b
}

// newSide opens a context with one of each object, which the end of the test closes. Events beyond
// the room of events are dropped.
func newSide(t *testing.T, h Harness, p driver.Provider, cfg config) *side {
	t.Helper()
	s := &side{t: t, h: h, cfg: cfg, bell: wait.NewLocal(), events: make(chan verbs.AsyncEvent, 64)}
	opts := verbs.Options{Bell: s.bell, OnEvent: func(e verbs.AsyncEvent) {
		select {
		case s.events <- e:
		default:
		}
	}}
	mem := h.NewMemory(t, cfg.memory)
	require.Len(t, mem.Bytes, cfg.memory)
	var err error
	s.ctx, err = verbs.Open(testwatch.Context(t), p, "", opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.ctx.Close()) })
	s.pd, err = s.ctx.AllocPD()
	require.NoError(t, err)
	s.scq, s.rcq = s.newCQ(cfg.cqDepth), s.newCQ(cfg.cqDepth)
	s.qp = s.newQP()
	s.mr, err = s.pd.RegMR(testwatch.Context(t), mem, cfg.access)
	require.NoError(t, err)
	return s
}

func (s *side) newCQ(depth int) *verbs.CQ {
	s.t.Helper()
	cq, err := s.ctx.CreateCQ(testwatch.Context(s.t), depth)
	require.NoError(s.t, err)
	return cq
}

func (s *side) newQP() *verbs.QP { return s.newQPOn(s.scq, s.rcq) }

// newQPOn creates a QP with the depths of s that completes into the given queues.
func (s *side) newQPOn(scq, rcq *verbs.CQ) *verbs.QP {
	s.t.Helper()
	qp, err := s.pd.CreateQP(testwatch.Context(s.t), verbs.QPConfig{
		SendCQ: scq, RecvCQ: rcq, SendDepth: s.cfg.depth, RecvDepth: s.cfg.depth,
		MaxSegments: s.cfg.segments, MaxInline: s.ctx.Info().MaxInline,
	})
	require.NoError(s.t, err)
	return qp
}

// newMR registers more memory.
func (s *side) newMR(n int, access verbs.Access) *verbs.MR {
	s.t.Helper()
	mr, err := s.pd.RegMR(testwatch.Context(s.t), s.h.NewMemory(s.t, n), access)
	require.NoError(s.t, err)
	return mr
}

// connect takes both queue pairs to RTS at the same time.
func connect(t *testing.T, a, b *verbs.QP) {
	t.Helper()
	ctx := testwatch.Context(t)
	toB, toA := b.Address(), a.Address()
	var g errgroup.Group
	g.Go(func() error { return a.Connect(ctx, toB, 0) })
	g.Go(func() error { return b.Connect(ctx, toA, 0) })
	require.NoError(t, g.Wait())
}

// at returns n bytes of the side's own memory as a segment.
func (s *side) at(offset, n int) verbs.Segment { return segment(s.t, s.mr, offset, n) }

func segment(t *testing.T, mr *verbs.MR, offset, n int) verbs.Segment {
	t.Helper()
	seg, err := mr.Segment(offset, n)
	require.NoError(t, err)
	return seg
}

// bytes returns n bytes of the side's own memory.
func (s *side) bytes(offset, n int) []byte { return s.mr.Bytes()[offset : offset+n] }

// fill stores a pattern in b that depends on the seed.
func fill(b []byte, seed int) []byte {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed*31 + 1)
	}
	return b
}

func pattern(n, seed int) []byte { return fill(make([]byte, n), seed) }
