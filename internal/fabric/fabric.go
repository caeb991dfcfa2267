package fabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Control carries a request to another rank's Serve and its response back.
type Control func(ctx context.Context, rank int, service string, payload []byte) ([]byte, error)

// Config configures a rank's fabric.
type Config struct {
	Rank int
	// Providers are in order of preference. Of several, a rank may lack one whose Open
	// returns driver.ErrNoDevice.
	Providers    []driver.Provider
	Heap         int64                // bytes of registered memory that can be allocated
	Shared       bool                 // the heap is a memfd, so that other processes can map it
	Reservations *memory.Reservations // where a shared heap reserves pages; the Fabric closes it; nil: none
	FMAMax       int                  // switch point in bytes; 0 also turns mapping off; negative takes the default
	Stats        bool                 // count operations on mapped memory too
	// DeviceAtomics matters for devices whose atomics must not be mixed with the CPU's.
	// With it the device applies all atomics; without it the CPUs do.
	DeviceAtomics bool
	OwnCore       bool          // no other rank needs the core that this one waits on
	PeerTimeout   time.Duration // until a silent connection counts as lost; 0 takes the provider's default
	// Connections is the number of connections that a large transfer to one peer uses, where
	// the device can. 0: one.
	Connections int
	// Expect is the time for which a rank expects the lower one of a mutual StartPeers to connect both. 0: 100 ms.
	Expect time.Duration
	// Passed is told of each way to a rank that failed before the next one was tried. nil: not told.
	Passed func(rank int, err error)
}

// A Fabric holds one rank's connections. Any goroutine may call its methods.
type Fabric struct {
	cfg      Config
	control  Control
	bell     *wait.Bell
	arena    *arena.Arena
	head     arena.Block // the bell, the zeros that flushes read, and the list of regions
	bindings []*binding
	regions  regionTable
	reached  reached
	health   health
	pending  pending
	attached attachments
	lacks    map[string]string     // causes by provider, of those that this rank has no device for
	sites    atomic.Pointer[sites] // nil until they are known

	peersMu   sync.Mutex
	peers     map[int]*dial
	inbound   map[inboundKey]*inbound
	queues    [MaxQueues]*Queue
	listening sync.WaitGroup // goroutines that poll devices without events
	making    sync.WaitGroup // calls that make resources which Close frees

	polling sync.Mutex
	missed  atomic.Bool // a goroutine came to poll while another did
	looks   uint64      // how often Progress polled; under polling
	wc      [32]driver.Completion
	closed  atomic.Bool     // Close has begun
	ended   atomic.Bool     // nothing is under way any more
	ctx     context.Context // ends on Close: of calls made for peers
	cancel  context.CancelCauseFunc
}

// headSize is the size of the head block: the bell's words, then the hash of this rank's card, zeros that a
// flush reads, and the list of regions.
const (
	headCard   = wait.Size
	headFlush  = 32
	headList   = 64
	headSize   = headList + listSize
	headRegion = "head"
)

// New opens the devices of all providers and the rank's heap.
func New(ctx context.Context, cfg Config, control Control) (*Fabric, error) {
	ctx = wait.Context(ctx)
	f := &Fabric{cfg: cfg, control: control, bell: wait.NewLocal(), peers: map[int]*dial{}, inbound: map[inboundKey]*inbound{}, lacks: map[string]string{}}
	f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	f.regions.init()
	f.health.init(f)
	f.pending.init()
	if err := f.open(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// open makes the heap, the head in it and the bell, and opens the providers. A provider without a
// device is left out if there are others.
func (f *Fabric) open(ctx context.Context) error {
	var err error
	if f.arena, err = arena.New(f.cfg.Heap, f.cfg.Shared, f.cfg.Reservations); err != nil {
		return err
	}
	if f.head, err = f.arena.Alloc(headSize); err != nil {
		return err
	}
	if f.cfg.Shared {
		f.bell = wait.NewShared(f.head.Bytes, f.head.FD, f.head.Offset)
	}
	for _, p := range f.cfg.Providers {
		b, err := f.bind(ctx, p)
		switch {
		case err == nil:
			f.bindings = append(f.bindings, b)
		case errors.Is(err, driver.ErrNoDevice) && len(f.cfg.Providers) > 1:
			f.lacks[p.Name()] = inner(err).Error()
		default:
			return fmt.Errorf("open provider %s: %w", p.Name(), err)
		}
	}
	if err := f.checkAtomics(); err != nil {
		return err
	}
	f.regions.list.init(f.bindings, f.head.Bytes[headList:])
	f.bell.OnPark(f.beforeSleep)
	if f.cfg.OwnCore {
		f.bell.OwnCore()
	}
	for _, b := range f.bindings {
		f.attend(b)
	}
	if _, err = f.Register(ctx, headRegion, f.head.Memory); err == nil {
		f.showCard()
	}
	return err
}

// inner returns the provider's own error behind one of package verbs.
func inner(err error) error {
	var op *verbs.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// Rank returns this rank's number in the world.
func (f *Fabric) Rank() int { return f.cfg.Rank }

// Arena returns the heap that registered memory comes from.
func (f *Fabric) Arena() *arena.Arena { return f.arena }

// Providers returns the names of the providers that may move this rank's bytes, in order
// of preference.
func (f *Fabric) Providers() []string {
	names := make([]string, len(f.bindings))
	for i, b := range f.bindings {
		names[i] = b.name
	}
	return names
}

// OnDemand reports whether this rank has one provider, whose device makes memory when a peer first uses it
// ([driver.MemoryInfo]).
func (f *Fabric) OnDemand() bool { return len(f.bindings) == 1 && f.bindings[0].info.Memory.OnDemand }

// Bell returns this rank's event count.
func (f *Fabric) Bell() *wait.Bell { return f.bell }

// Mapping reports whether this rank uses peers' memory directly where it can map it.
func (f *Fabric) Mapping() bool { return f.cfg.FMAMax != 0 }

// Coherent reports whether this rank's CPU may apply atomics to its own memory. If
// devices apply all of them, the rank reaches its own memory through a queue pair, as
// its peers do.
func (f *Fabric) Coherent() bool {
	return !f.cfg.DeviceAtomics || !slices.ContainsFunc(f.bindings, func(b *binding) bool { return !b.info.Atomics.Coherent })
}

// Counting reports whether callers count operations on mapped memory, too.
func (f *Fabric) Counting() bool { return f.cfg.Stats }

// MapsAll reports whether this rank uses every rank's memory directly. Mapping is on then,
// and all providers reach only ranks whose memory they map.
func (f *Fabric) MapsAll() bool {
	for _, b := range f.bindings {
		if !b.info.SameHost || !b.info.Memory.Maps {
			return false
		}
	}
	return f.Mapping()
}

// Close ends all connections and frees all memory. Operations under way end with an
// error.
func (f *Fabric) Close() error {
	if !f.shut() {
		return nil
	}
	f.cancel(ErrClosed)
	f.End(ErrClosed, "")
	f.pump() // composers see the end
	f.attached.close()
	f.drain()
	errs := []error{f.closePeers()}
	for _, b := range f.bindings {
		errs = append(errs, b.close(f.regions.closeAll(b)))
	}
	f.regions.unpin()
	f.ended.Store(true)
	f.bell.Ring()
	f.health.close()
	if f.arena != nil {
		errs = append(errs, f.arena.Close())
	}
	errs = append(errs, f.cfg.Reservations.Close())
	return errors.Join(errs...)
}

// shut has begin fail from now on. It returns true to the first caller.
func (f *Fabric) shut() bool {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	return !f.closed.Swap(true)
}

// StartPeers begins to connect to all of ranks at once, each for a region of that name. Peer
// waits for each. If it is mutual, each of ranks makes such a call for this one at about the same time. Then one request
// may connect both: the lower rank sends it at once.
func (f *Fabric) StartPeers(ranks []int, region string, mutual bool) {
	for _, rank := range ranks {
		if _, err := f.dial(rank, region, mutual); err != nil {
			return // Peer returns the error, too
		}
	}
}

// begin lets a call make resources that Close frees. Close waits until the caller calls
// f.making.Done.
func (f *Fabric) begin() error {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	if f.closed.Load() {
		return ErrClosed
	}
	f.making.Add(1)
	return nil
}

// drain settles all completions that are there, and returns how often Progress polled.
func (f *Fabric) drain() uint64 {
	defer f.pump()
	f.polling.Lock()
	defer f.polling.Unlock()
	for f.poll() > 0 {
		// There may be more than one poll takes.
	}
	return f.looks
}

// A binding holds one provider's open device.
type binding struct {
	name        string
	info        driver.DeviceInfo
	passive     bool // targets need no help by polling
	ctx         *verbs.Context
	pd          *verbs.PD
	cq          *verbs.CQ
	ops         opTable
	stages      stages
	mailboxes   sync.Map     // *mailbox by the number of its queue pair
	due         atomic.Int64 // responses that wait for room in a send queue
	attention   attention
	room        int64         // signaled requests that cq has room for
	outstanding atomic.Int64  // those under way
	overrun     atomic.Bool   // cq has lost completions
	dead        atomic.Bool   // and its queue pairs were told to end
	completed   atomic.Uint64 // signaled requests that have completed, ever
	qps         atomic.Int64
}

// cqDepth bounds the completions that may wait in a rank's queue. A rank has fewer
// requests under way at once, and half as many if receives complete there as well.
const cqDepth = 1 << 14

// bind opens one provider with a protection domain and a completion queue. After an error it has opened
// nothing.
func (f *Fabric) bind(ctx context.Context, p driver.Provider) (*binding, error) {
	b := &binding{name: p.Name()}
	opts := driver.Options{Bell: f.bell, OnEvent: func(ev driver.AsyncEvent) { f.asyncEvent(b, ev) }}
	var err error
	if b.ctx, err = verbs.Open(ctx, p, "", opts); err != nil {
		return nil, err
	}
	b.info = b.ctx.Info()
	b.passive = b.info.SameHost && !f.listens(b)
	depth := min(cqDepth, b.info.MaxCQDepth)
	if b.room = int64(depth) * 7 / 8; f.listens(b) { // the rest: goroutines that post at the same time
		b.room = int64(depth) / 2
	}
	if err = b.fitForMessages(); err == nil {
		b.pd, err = b.ctx.AllocPD()
	}
	if err == nil {
		b.cq, err = b.ctx.CreateCQ(ctx, depth)
	}
	if err != nil {
		return nil, errors.Join(err, b.ctx.Close())
	}
	return b, nil
}

// close ends the device, the fabric's registrations and mrs, those of regions.
func (b *binding) close(mrs []*verbs.MR) error {
	var errs []error
	mrs = slices.Concat(mrs, b.ops.close(), b.stages.close())
	for _, mr := range mrs {
		errs = append(errs, mr.Close())
	}
	return errors.Join(append(errs, b.pd.Close(), b.cq.Close(), b.ctx.Close())...)
}

// binding returns the binding of a provider, nil if the fabric has none of that name.
func (f *Fabric) binding(name string) *binding {
	for _, b := range f.bindings {
		if b.name == name {
			return b
		}
	}
	return nil
}
