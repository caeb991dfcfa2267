package runtime

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
)

// An Option adjusts how a rank joins its job. Options win over the environment that grun sets. A wrong
// value is an error of [Init] and [Run] that names the valid ones; a number out of an option's bounds is
// [ErrRange].
type Option func(*options) error

// An options holds what the options of Init and Run have set, behind the environment's values.
type options struct {
	provider    string // a list, see WithProvider
	heap        int64
	fmaMax      int
	stats       bool
	peerTimeout time.Duration
	expect      time.Duration // see fabric.Config; 0: its default
	startWait   time.Duration // 0: see place.wait
	verbose     bool
	atomics     string
	rdma        rdmaSettings
	iface       string // where tcp listens; "": see tcp
	tls         bool
	connections int      // of a large transfer; 0: one
	hosts       []string // by rank; nil: each rank finds out its own host
	cores       int      // 0: the launcher's number
	wrap        func(driver.Provider) driver.Provider
}

// WithProvider lists the providers that move the bytes, in order of preference: "shm" (ranks
// of one host), "tcp", "ibv" (RDMA devices) and "loop" (ranks of one process). Each pair of
// ranks uses the first one that both have and that joins them. So with "shm,ibv,tcp" a rank
// uses shm on its host, ibv to ranks with a device as well, and tcp to the others. "auto" is
// the default. It stands for "shm", or "loop" in RunLocal, if all ranks are on one host. Else
// it stands for "shm,ibv,tcp"; with TLS, or atomics by devices, for "shm,tcp". Init returns
// an error if the list has an unknown name, or if two ranks have no provider in common. All ranks give the
// same list.
func WithProvider(list string) Option {
	return func(o *options) error { return o.setProvider(list) }
}

// setProvider sets the list of providers, after a check of their names.
func (o *options) setProvider(list string) error {
	o.provider = cmp.Or(list, auto)
	_, err := ParseProviders(o.provider)
	return err
}

// WithHeap bounds the memory that this rank can allocate for windows, pipes and buffers, in bytes: 64 KiB
// at least and 64 TiB at most. Without this option it is half of the host's memory and 1 GiB at least, or
// 1 GiB where ranks share a process. Only allocated parts occupy memory. Ranks may differ.
func WithHeap(bytes int64) Option {
	return func(o *options) error {
		if bytes < minHeap || bytes > maxHeap {
			return fmt.Errorf("heap of %d bytes: %w: need at least %d (64 KiB) and at most %d (64 TiB)", bytes, ErrRange, minHeap, maxHeap)
		}
		o.heap = bytes
		return nil
	}
}

// WithFMAMax sets the largest queued write, in bytes, that the CPU copies as it posts
// the write. A larger write leaves from the caller's slice, and the call waits for
// that. 0 turns mapped memory off as well: every operation goes through a queue pair. It is from 0 to
// 64 TiB; without this option it is 64 KiB. A provider copies less if it cannot copy so much. Ranks may differ.
func WithFMAMax(bytes int) Option {
	return func(o *options) error {
		if bytes < 0 || int64(bytes) > maxHeap {
			return fmt.Errorf("switch point of %d bytes: %w: need at least 0 and at most %d", bytes, ErrRange, maxHeap)
		}
		o.fmaMax = bytes
		return nil
	}
}

// WithStats counts operations on mapped memory too, for grun --stats and [Job.Stats]. Without this option
// only queued operations count. Ranks may differ.
func WithStats() Option {
	return func(o *options) error { o.stats = true; return nil }
}

// WithPeerTimeout sets the peer timeout. After a silence of d, a rank counts as
// unreachable, and the launcher as lost ([ErrLauncherLost]). d is between 100 ms and 24 h;
// without this option it is 30 s. The launcher counts as lost after 2 s at the earliest.
// While this process is stopped it does not count the launcher's silence. Ranks may differ.
func WithPeerTimeout(d time.Duration) Option {
	return func(o *options) error {
		if d < minPeerTimeout || d > maxPeerTimeout {
			return fmt.Errorf("peer timeout of %v: %w: need at least %v and at most %v", d, ErrRange, minPeerTimeout, maxPeerTimeout)
		}
		o.peerTimeout = d
		return nil
	}
}

// WithStartTimeout sets the start timeout: if ranks have not joined d after the first one, Init
// returns a [StartError] at the ranks that have. The error names the missing ranks, and d is
// between 100 ms and 24 h. Without this option it is 5 minutes in a job without grun, and there is
// none under grun. Of several values the one that ends first counts.
func WithStartTimeout(d time.Duration) Option {
	return func(o *options) error {
		if d < minPeerTimeout || d > maxPeerTimeout {
			return fmt.Errorf("start timeout of %v: %w: need at least %v and at most %v", d, ErrRange, minPeerTimeout, maxPeerTimeout)
		}
		o.startWait = d
		return nil
	}
}

// WithAtomics chooses the processor that applies atomics on RDMA devices. Most such
// devices do not keep their atomics atomic with the CPU's, so one side must apply all
// of them. "cpu" is the default: the target's CPU applies them, in a goroutine that
// makes progress there. With "nic" the devices apply them, the owner's own atomics too.
// No program may then touch those words by loads and stores. All ranks give the same
// value.
func WithAtomics(by string) Option {
	return func(o *options) error { return o.setAtomics(by) }
}

// WithRDMA chooses the RDMA device and its settings, in the form of GRUN_RDMA: a list
// such as "device=mlx5_0,port=1,gid=10.0.0.1,mtu=1024,retries=6". The state of the
// device decides the settings that the list does not name. Init returns an error for an unknown
// setting or a wrong value. Ranks may differ.
func WithRDMA(settings string) Option {
	return func(o *options) (err error) {
		o.rdma, err = parseRDMA(settings)
		return err
	}
}

// WithIface makes the provider tcp listen at an address of this host, as GRUN_IFACE does. The name is an
// address, an interface such as "eth0", or a subnet such as "10.1.0.0/16" or "fd00::/64". For an interface or
// a subnet, tcp takes its first address. Without this option tcp listens on the loopback interface if all
// ranks are processes of this host. Else it listens on every interface. Ranks may differ. If this host has no
// such address, Init returns an error that lists its interfaces.
func WithIface(name string) Option {
	return func(o *options) error { o.iface = name; return nil }
}

// WithConnections sets the number of connections over tcp that one put or get of 4 MiB or
// more uses, 1 to 16. Without this option it is one. A connection carries a window per round
// trip at most. The system bounds the window, on Linux to 4 MiB (net.ipv4.tcp_wmem). So 2 to
// 8 connections pay where round trips take many milliseconds. Started transfers use one.
// Ranks may differ. A transfer that ends with an error may still write until a Flush returns.
func WithConnections(n int) Option {
	return func(o *options) error {
		if n < 1 || n > fabric.MaxConnections {
			return fmt.Errorf("%d connections: %w: choose 1 to %d connections", n, ErrRange, fabric.MaxConnections)
		}
		o.connections = n
		return nil
	}
}

// WithTLS encrypts and authenticates the connections of this rank with the rendezvous and over
// tcp, as GRUN_TLS=1 does. They use TLS 1.3, with keys that all ranks derive from the job's
// secret. Memory that ranks of one host map needs none. Provider ibv does not encrypt: Init
// refuses it if the job has several hosts. All ranks must be alike: the rendezvous refuses a rank
// that is not. Without this option they are neither encrypted nor authenticated one by one.
func WithTLS() Option {
	return func(o *options) error { o.tls = true; return nil }
}

// setAtomics sets whether CPUs or NICs apply atomics.
func (o *options) setAtomics(by string) error {
	if by != "cpu" && by != "nic" {
		return fmt.Errorf("atomics by %q: choose cpu or nic", by)
	}
	o.atomics = by
	return nil
}

// WithWrap wraps every provider: verbs/trace counts its requests, verbs/faulty disturbs
// them. It serves tests; wrap runs once for each provider of this rank. Ranks may differ.
func WithWrap(wrap func(driver.Provider) driver.Provider) Option {
	return func(o *options) error { o.wrap = wrap; return nil }
}

const (
	minHeap = 64 << 10
	// maxHeap leaves room for other mappings in 47 bits of addresses.
	maxHeap = 64 << 40
	// minPeerTimeout leaves a live peer on a busy machine time to send a sign of life.
	minPeerTimeout = 100 * time.Millisecond
	maxPeerTimeout = 24 * time.Hour
	// localHeap is the default for ranks with memory on the Go heap.
	localHeap = 1 << 30
)

// collect reads the environment, then applies opts.
func collect(opts []Option) (options, error) {
	o := options{provider: auto, fmaMax: -1, atomics: "cpu"}
	if err := o.readEnvironment(); err != nil {
		return o, err
	}
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// sharedHeap is the default size of a heap in a memfd: half of this host's
// memory. It is an address range until it is allocated.
func sharedHeap() int64 { return max(memorySize()/2, localHeap) }
