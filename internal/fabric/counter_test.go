//go:build linux

package fabric_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/shm"
	"github.com/gopgas/gopgas/verbs/tcp"
)

// A counter counts the resources of a device. Its hooks may be nil. A hook that returns an
// error replaces the call.
type counter struct {
	driver.Provider
	qps, mrs atomic.Int64
	onRTR    atomic.Pointer[func() error]
	onMap    atomic.Pointer[func() error]
	broken   chan driver.AsyncEvent // events that the device told the fabric
	tell     func(driver.AsyncEvent)
	lastQP   atomic.Uint32
}

func newCounter(p driver.Provider) *counter {
	return &counter{Provider: p, broken: make(chan driver.AsyncEvent, 64)}
}

func run(hook *atomic.Pointer[func() error]) error {
	if f := hook.Load(); f != nil {
		return (*f)()
	}
	return nil
}

func (y *counter) Open(ctx context.Context, name string, opts driver.Options) (driver.Context, error) {
	next := opts.OnEvent
	y.tell = next
	opts.OnEvent = func(ev driver.AsyncEvent) {
		next(ev)
		if ev.Kind == driver.EventQPFatal {
			y.broken <- ev
		}
	}
	c, err := y.Provider.Open(ctx, name, opts)
	return countedContext{c, y}, err
}

type countedContext struct {
	driver.Context
	y *counter
}

func (c countedContext) RegMR(ctx context.Context, mem driver.Memory, access driver.Access) (driver.MR, error) {
	mr, err := c.Context.RegMR(ctx, mem, access)
	if err != nil {
		return nil, err
	}
	c.y.mrs.Add(1)
	return countedMR{mr, c.y}, nil
}

func (c countedContext) CreateQP(ctx context.Context, cfg driver.QPConfig) (driver.QP, error) {
	qp, err := c.Context.CreateQP(ctx, cfg)
	if err != nil {
		return nil, err
	}
	c.y.qps.Add(1)
	c.y.lastQP.Store(qp.Num())
	counted := countedQP{QP: qp, Canceler: qp.(driver.Canceler), y: c.y}
	if mapper, ok := qp.(driver.Mapper); ok {
		return countedMapper{counted, mapper}, nil
	}
	return counted, nil
}

type countedMR struct {
	driver.MR
	y *counter
}

func (m countedMR) Close() error {
	m.y.mrs.Add(-1)
	return m.MR.Close()
}

type countedQP struct {
	driver.QP
	driver.Canceler
	y *counter
}

func (q countedQP) Modify(ctx context.Context, to driver.State, attr driver.Attr) error {
	if to == driver.StateRTR {
		if err := run(&q.y.onRTR); err != nil {
			return err
		}
	}
	return q.QP.Modify(ctx, to, attr)
}

func (q countedQP) Close() error {
	q.y.qps.Add(-1)
	return q.QP.Close()
}

type countedMapper struct {
	countedQP
	driver.Mapper
}

func (q countedMapper) Map(ctx context.Context, at driver.RemoteAddr, n int, access driver.Access) ([]byte, error) {
	if err := run(&q.y.onMap); err != nil {
		return nil, err
	}
	return q.Mapper.Map(ctx, at, n, access)
}

// A way says over which provider to connect, and how.
type way struct {
	name   string
	fmaMax int
	open   func(wire *loop.Provider, y func(driver.Provider) *counter) (driver.Provider, *counter)
}

// plain opens a provider and counts its resources.
func plain(p func(*loop.Provider) driver.Provider) func(*loop.Provider, func(driver.Provider) *counter) (driver.Provider, *counter) {
	return func(wire *loop.Provider, count func(driver.Provider) *counter) (driver.Provider, *counter) {
		y := count(p(wire))
		return y, y
	}
}

// overTCP returns tcp with a peer timeout. 0 is the default.
func overTCP(timeout time.Duration) way {
	return way{"tcp", -1, plain(func(*loop.Provider) driver.Provider {
		return tcp.New(tcp.Config{Listen: "127.0.0.1", PeerTimeout: timeout})
	})}
}

// maps reports whether the ranks map each other's memory.
func (w *way) maps() bool { return w.name == "shm" || w.name == "loop-mapped" }

func ways() []way {
	onLoop := func(wire *loop.Provider) driver.Provider { return wire }
	return []way{
		{"loop-mapped", -1, plain(onLoop)},
		{"loop-queued", 0, plain(onLoop)},
		{"loop-with-mailboxes", 0, func(wire *loop.Provider, count func(driver.Provider) *counter) (driver.Provider, *counter) {
			y := count(wire)
			return faulty.New(y, faulty.Plan{HideMapper: true, HideExtendedAtomics: true, HideCoherentAtomics: true}), y
		}},
		{"shm", -1, plain(func(*loop.Provider) driver.Provider { return shm.New(shm.Config{}) })},
		overTCP(0),
	}
}

// A countedRig runs two ranks. It counts their resources and can hold up their control
// messages.
type countedRig struct {
	ranks    [2]*fabric.Fabric
	counters [2]*counter
	mem      []byte // of rank 1, under the name "x"
	hold     atomic.Pointer[func(step string)]
	calls    sync.WaitGroup
}

func (w way) rig(t *testing.T) *countedRig {
	r := &countedRig{}
	wire := loop.New()
	for rank := range r.ranks {
		p, y := w.open(wire, newCounter)
		f, err := fabric.New(t.Context(), fabric.Config{Rank: rank, Heap: 1 << 20, FMAMax: w.fmaMax, Shared: w.name == "shm",
			Providers: []driver.Provider{p}}, r.control(rank))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		r.ranks[rank], r.counters[rank] = f, y
	}
	block, err := r.ranks[1].Arena().Alloc(64)
	require.NoError(t, err)
	region, err := r.ranks[1].Register(t.Context(), "x", block.Memory)
	require.NoError(t, err)
	r.mem = region.Bytes()
	t.Cleanup(r.calls.Wait)
	return r
}

// control carries requests as the launcher does. When ctx ends, the caller waits no more,
// and the target serves the request all the same.
func (r *countedRig) control(from int) fabric.Control {
	type response struct {
		payload []byte
		err     error
	}
	return func(ctx context.Context, rank int, service string, payload []byte) ([]byte, error) {
		done := make(chan response, 1)
		r.calls.Go(func() {
			r.at(service + " request")
			var a response
			a.payload, a.err = r.ranks[rank].Serve(context.Background(), from, service, payload)
			r.at(service + " response")
			done <- a
		})
		select {
		case a := <-done:
			return a.payload, a.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (r *countedRig) at(step string) {
	if hold := r.hold.Load(); hold != nil {
		(*hold)(step)
	}
}

// holdAt stops the first caller at a step of connecting until the test calls release.
func (r *countedRig) holdAt(t *testing.T, step string) (reached <-chan struct{}, release func()) {
	there, free := make(chan struct{}), make(chan struct{})
	var once sync.Once
	stop := func() error {
		first := false
		once.Do(func() { first = true })
		if first {
			close(there)
			<-free
		}
		return nil
	}
	switch step {
	case "origin's queue pair":
		r.counters[0].onRTR.Store(&stop)
	case "target's queue pair":
		r.counters[1].onRTR.Store(&stop)
	default:
		hold := func(now string) {
			if now == step {
				_ = stop()
			}
		}
		r.hold.Store(&hold)
	}
	release = sync.OnceFunc(func() { close(free) })
	t.Cleanup(release)
	return there, release
}

// use puts bytes into rank 1's memory and sees them there.
func (r *countedRig) use(t *testing.T, value byte) {
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	if remote.Mem != nil {
		remote.Mem[0] = value
	} else {
		require.NoError(t, remote.Write(watched(t), 0, []byte{value}))
		require.NoError(t, remote.Peer.Flush(watched(t)))
	}
	require.Equal(t, value, r.mem[0])
}

// A held counts the queue pairs and registrations of two ranks.
type held struct{ qps, mrs [2]int64 }

func (r *countedRig) held() (h held) {
	for i, y := range r.counters {
		h.qps[i], h.mrs[i] = y.qps.Load(), y.mrs.Load()
	}
	return h
}

// descriptors counts the open files of this process. The first pipe has Go open some for good.
func descriptors(t *testing.T) int {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, errors.Join(r.Close(), w.Close()))
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(open)
}

// connectPayload returns a request to connect to the queue pair of an address.
func connectPayload(t *testing.T, provider string, address []byte) []byte {
	payload, err := json.Marshal(map[string]any{"Provider": provider, "Address": address})
	require.NoError(t, err)
	return payload
}

var errMade = errors.New("made for the test")

// fails has a hook fail once, and returns a flag that reports whether it did.
func fails(hook *atomic.Pointer[func() error]) *atomic.Bool {
	var done atomic.Bool
	f := func() error {
		if done.Swap(true) {
			return nil
		}
		return errMade
	}
	hook.Store(&f)
	return &done
}
