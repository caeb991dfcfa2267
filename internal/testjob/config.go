package testjob

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"

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
	HideCoherentAtomics: true,
	NeedLocalKeys:       true, MaxInline: 256}

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

// EachApart runs f as a subtest on several pretended hosts: on a sample of Apart with each
// of its providers, or on all when soaking.
func EachApart(t *testing.T, f func(t *testing.T, c Config)) {
	t.Helper()
	const providers = 4
	shift := hashOf(t.Name()) / providers
	for i, c := range Apart() {
		if (shift+i%providers)%3 == i/providers || Soak() {
			t.Run(c.String(), func(t *testing.T) { f(t, c) })
		}
	}
}

// sizes are the numbers of ranks that tests run with: one, powers of two, and
// neither.
var sizes = [...]int{1, 2, 3, 4, 5, 7, 8}

// fewRanks bounds them under the race detector, unless tests soak. More ranks take most of
// the time there, and make accesses at the same places.
const fewRanks = 5

// sizesFrom returns the sizes of atLeast ranks or more.
func sizesFrom(atLeast int) (counts []int) {
	for _, n := range sizes {
		if n >= atLeast && (n <= max(fewRanks, atLeast) || !testwatch.Race || Soak()) {
			counts = append(counts, n)
		}
	}
	return counts
}

// only returns the configurations, strained ones among them, that GOPGAS_ONLY selects:
// its value is a part of their names, such as "shallow". It returns nil if the
// variable is not set.
func only(counts []int) (list []Config) {
	part := os.Getenv("GOPGAS_ONLY")
	if part == "" {
		return nil
	}
	list = []Config{} // not nil, even if no name matches
	for _, n := range counts {
		for _, c := range append(Transports(n), Strained(n)...) {
			if strings.Contains(c.String(), part) {
				list = append(list, c)
			}
		}
	}
	return list
}

// strained returns the strained transport of n ranks for a test whose name has
// this hash.
func strained(hash, n int) Config {
	all := Strained(n)
	return all[hash%len(all)]
}

func hashOf(name string) int {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int(h.Sum32() >> 1)
}

// Soak reports whether tests shall take their time.
func Soak() bool { return os.Getenv("GOPGAS_SOAK") == "1" }

// Matrix lists the configurations of atLeast ranks or more for a test of this
// name. When soaking it lists all of them, else a sample with every transport and
// every number of ranks, and one that is strained. With GOPGAS_ONLY it lists
// those.
func Matrix(name string, atLeast int) []Config {
	shift, counts := hashOf(name), sizesFrom(atLeast)
	if list := only(counts); list != nil {
		return list
	}
	var list []Config
	if Soak() {
		for _, n := range counts {
			list = append(append(list, Transports(n)...), Strained(n)...)
		}
		return list
	}
	ways := len(Transports(1))
	for i := range max(len(counts), ways) {
		list = append(list, Transports(counts[i%len(counts)])[(i+shift)%ways])
	}
	return append(list, strained(shift, counts[shift/len(Strained(1))%len(counts)]))
}

// Each runs f as a subtest on the matrix of configurations with atLeast ranks or
// more.
func Each(t *testing.T, atLeast int, f func(t *testing.T, c Config)) {
	t.Helper()
	for _, c := range Matrix(t.Name(), atLeast) {
		t.Run(c.String(), func(t *testing.T) { f(t, c) })
	}
}

// EachTransport runs f as a subtest on every transport with n ranks, and on one that is
// strained; with GOPGAS_ONLY on those.
func EachTransport(t *testing.T, n int, f func(t *testing.T, c Config)) {
	t.Helper()
	for _, c := range transports(t.Name(), n) {
		t.Run(c.String(), func(t *testing.T) { f(t, c) })
	}
}

// transports lists the configurations of EachTransport for a test of this name.
func transports(name string, n int) []Config {
	if list := only([]int{n}); list != nil {
		return list
	}
	if Soak() {
		return append(Transports(n), Strained(n)...)
	}
	return append(Transports(n), strained(hashOf(name), n))
}

// Share deals the transports with n ranks, and one that is strained, out to the parts of a
// test, whose number is parts: each part gets some of them, and each of them runs. When
// soaking, and with GOPGAS_ONLY, each part gets all. So it does of RDMA devices.
func Share(name string, n, part, parts int) (share []Config) {
	list := transports(name, n)
	if Soak() || only([]int{n}) != nil {
		return list
	}
	shift := hashOf(name)
	for i := range max(parts, len(list)) {
		if c := list[(i+shift)%len(list)]; i%parts == part && c.Provider != "ibv" {
			share = append(share, c)
		}
	}
	for _, c := range list {
		if c.Provider == "ibv" {
			share = append(share, c)
		}
	}
	return share
}

// EachSample runs f as a subtest on shm and tcp with n ranks: for packages that are made
// of pipes, whose own tests run on every transport. When soaking, and with GOPGAS_ONLY,
// it is EachTransport.
func EachSample(t *testing.T, n int, f func(t *testing.T, c Config)) {
	t.Helper()
	if Soak() || only([]int{n}) != nil {
		EachTransport(t, n, f)
		return
	}
	mapped := Config{Provider: "shm", Ranks: n}
	if testwatch.Race {
		mapped.Provider = "loop"
	}
	for _, c := range []Config{mapped, {Provider: "tcp", Ranks: n}} {
		t.Run(c.String(), func(t *testing.T) { f(t, c) })
	}
}
