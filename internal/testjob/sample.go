package testjob

import (
	"hash/fnv"
	"os"
	"strings"
	"testing"

	"github.com/gopgas/gopgas/internal/testwatch"
)

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

// Selected lists [Transports] for n ranks, or those that GOPGAS_ONLY selects.
func Selected(n int) []Config {
	if list := only([]int{n}); list != nil {
		return list
	}
	return Transports(n)
}

// strained returns the strained transport of n ranks for a test whose name has
// this hash.
func strained(hash, n int) Config {
	all := Strained(n)
	return all[hash%len(all)]
}

// hashOf returns a number that depends on the name of a test only.
func hashOf(name string) int {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int(h.Sum32() >> 1)
}

// Soak reports whether tests shall take their time.
func Soak() bool { return testwatch.Soak() }

// kind returns mapped, tcp, queued, nic or ibv: transports of one kind move bytes alike.
func (c Config) kind() string {
	switch {
	case c.NIC:
		return "nic"
	case c.Provider == "tcp" || c.Provider == "ibv":
		return c.Provider
	case c.Queued:
		return "queued"
	}
	return "mapped"
}

// sample returns one transport of each kind for a test whose name has this hash, and all
// transports of RDMA devices. Another test of the package gets other ones.
func sample(hash, n int) (list []Config) {
	kinds := map[string][]Config{}
	for _, c := range Transports(n) {
		kinds[c.kind()] = append(kinds[c.kind()], c)
	}
	for i, kind := range []string{"mapped", "tcp", "queued", "nic"} {
		list = append(list, kinds[kind][(hash>>i)%len(kinds[kind])])
	}
	return append(list, kinds["ibv"]...)
}

// Matrix lists the configurations of atLeast ranks or more for a test of this name. When soaking it
// lists all of them. Otherwise it lists a sample: every kind of transport, small and large numbers
// of ranks, and one that is strained. With GOPGAS_ONLY it lists those.
func Matrix(name string, atLeast int) []Config {
	hash, counts := hashOf(name), sizesFrom(atLeast)
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
	list = append(sample(hash, 1), strained(hash, 1))
	for i := range list {
		// The step spreads the sizes, and the hash decides which transport gets which.
		list[i].Ranks = counts[(hash/16+i*max(1, len(counts)/len(list)))%len(counts)]
	}
	return list
}

// Each runs f as a subtest on the matrix of configurations with atLeast ranks or
// more.
func Each(t *testing.T, atLeast int, f func(t *testing.T, c Config)) {
	t.Helper()
	run(t, Matrix(t.Name(), atLeast), f)
}

// EachTransport runs f as a subtest on one transport of each kind with n ranks, and on one
// that is strained; when soaking on all, with GOPGAS_ONLY on those.
func EachTransport(t *testing.T, n int, f func(t *testing.T, c Config)) {
	t.Helper()
	if list := only([]int{n}); list != nil || Soak() {
		run(t, transports(t.Name(), n), f)
		return
	}
	run(t, append(sample(hashOf(t.Name()), n), strained(hashOf(t.Name()), n)), f)
}

// EveryTransport is EachTransport for tests of the transports themselves: it leaves out
// none.
func EveryTransport(t *testing.T, n int, f func(t *testing.T, c Config)) {
	t.Helper()
	run(t, transports(t.Name(), n), f)
}

// run runs f as a subtest on each configuration.
func run(t *testing.T, list []Config, f func(t *testing.T, c Config)) {
	t.Helper()
	for _, c := range list {
		t.Run(c.String(), func(t *testing.T) { f(t, c) })
	}
}

// transports lists the configurations of EveryTransport for a test of this name.
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
// test, whose number is parts. Each part gets some of them, and each of them runs. When
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
