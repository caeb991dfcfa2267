package testjob

import (
	"fmt"
	"strings"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/ibv"
)

// A Config is one way to run a job in this process.
type Config struct {
	Provider string // loop, shm, tcp, ibv, auto, or a list
	TLS      bool   // connections are encrypted
	Queued   bool   // mapping is off: every operation goes through a queue pair
	NIC      bool   // only the capabilities of RDMA NICs; of a list, for those providers that reach other hosts
	Atomics  string // the NIC's atomics: "" and cpu, or nic
	Shallow  bool   // queues of 8 requests
	Refusing bool   // queues that refuse posts now and then, whatever their content
	Ranks    int
	// Hosts has a character for each rank's pretended host, such as "aab"; "" is
	// one host for all. Provider auto takes tcp between them.
	Hosts string
}

// heap is small, so that leaks show, and large enough for every test.
const heap = 256 << 20

// Options returns the options by which runtime.RunLocal runs this configuration.
func (c Config) Options() []runtime.Option {
	opts := []runtime.Option{runtime.WithProvider(c.Provider), runtime.WithHeap(heap)}
	if c.Queued {
		opts = append(opts, runtime.WithFMAMax(0))
	}
	if c.TLS {
		opts = append(opts, runtime.WithTLS())
	}
	if c.Atomics != "" {
		opts = append(opts, runtime.WithAtomics(c.Atomics))
	}
	if plan := c.plan(); c.NIC || c.Shallow || c.Refusing {
		opts = append(opts, runtime.WithWrap(func(p driver.Provider) driver.Provider {
			if c.Provider == nearAndNIC() && p.Name() != "tcp" {
				return p
			}
			return faulty.New(p, plan)
		}))
	}
	if c.Hosts != "" {
		opts = append(opts, runtime.WithHosts(strings.Split(c.Hosts, "")...))
	}
	return opts
}

// nic hides the capabilities that RDMA NICs lack, without any fault.
var nic = faulty.Plan{HideMapper: true, HideCanceler: true, HideExtendedAtomics: true, HideAppliedWrites: true,
	HideCoherentAtomics: true, HideBlocks: true,
	NeedLocalKeys: true, RefuseUnpaged: true, MaxInline: 256}

// nearAndNIC lists mapped memory within a host, and tcp between hosts, which stands for a NIC.
func nearAndNIC() string {
	if testwatch.Race {
		return "loop,tcp"
	}
	return "shm,tcp"
}

// shallow is the depth of queues that are full in every test.
const shallow = 8

// plan returns the plan by which verbs/faulty changes the configuration's provider.
func (c Config) plan() (plan faulty.Plan) {
	if c.NIC {
		plan = nic
	}
	if c.Shallow {
		plan.MaxDepth = shallow
	}
	if c.Refusing {
		plan.QueueFull, plan.PartialPosts = 0.2, 0.2
	}
	return plan
}

// Mapped reports whether ranks reach each other's memory by loads and stores.
func (c Config) Mapped() bool {
	return !c.Queued && !c.NIC && (c.Provider == "loop" || c.Provider == "shm")
}

// String returns the name of the configuration, which is that of its subtest.
func (c Config) String() string {
	name := c.Provider
	switch {
	case c.NIC:
		name += "-as-nic"
	case c.Queued:
		name += "-queued"
	case c.Mapped():
		name += "-mapped"
	}
	if c.TLS {
		name += "-tls"
	}
	if c.Atomics != "" {
		name += "-atomics"
	}
	if c.Shallow {
		name += "-shallow"
	}
	if c.Refusing {
		name += "-refusing"
	}
	if c.Hosts != "" {
		return fmt.Sprintf("%s/%s", name, c.Hosts)
	}
	return fmt.Sprintf("%s/%d", name, c.Ranks)
}

// Transports lists the ways to move bytes, for jobs of n ranks.
func Transports(n int) []Config {
	list := []Config{
		{Provider: "loop", Ranks: n},
		{Provider: "tcp", Ranks: n},
		{Provider: "loop", Queued: true, Ranks: n},
		{Provider: "loop", NIC: true, Ranks: n},
		{Provider: "loop", NIC: true, Atomics: "nic", Ranks: n},
	}
	if !testwatch.Race {
		list = append(list, Config{Provider: "shm", Ranks: n}, Config{Provider: "shm", Queued: true, Ranks: n})
	}
	if onDevices {
		list = append(list, Config{Provider: "ibv", Ranks: n}, Config{Provider: "ibv", Atomics: "nic", Ranks: n})
	}
	return list
}

// Strained lists transports whose queues are often full, for jobs of n ranks. A wait for
// room that never ends shows there.
func Strained(n int) []Config {
	return []Config{
		{Provider: "tcp", Shallow: true, Ranks: n},
		{Provider: "loop", Queued: true, Shallow: true, Ranks: n},
		{Provider: "loop", NIC: true, Shallow: true, Ranks: n},
		{Provider: "loop", NIC: true, Refusing: true, Ranks: n},
	}
}

// onDevices reports that this machine has RDMA devices and this test binary can
// use them: then tests run on them, too.
var onDevices = ibv.Built && len(ibv.Present()) > 0

// Apart lists ways to run jobs of 1 to 8 ranks on pretended hosts. A host has one
// rank, as many as the rest, more, or a mixture of these.
func Apart() []Config {
	var list []Config
	for i, hosts := range [...]string{"abbb", "aabbb", "aabb", "abcc", "abab", "aabbccc", "abcabcab", "aaaabbbb", "aab", "abbaab", "a", "ab"} {
		c := Config{Provider: "auto", TLS: i%8 < 2, Ranks: len(hosts), Hosts: hosts} // for half of those over tcp
		switch i % 4 {
		case 1:
			c.Provider = "tcp"
		case 2:
			c.Provider, c.NIC = nearAndNIC(), true
		case 3:
			c.Provider, c.Queued = "loop", true
		}
		list = append(list, c)
	}
	return list
}
