package runtime

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

// WithHosts names the host of each rank, in the order of ranks, as GRUN_HOSTS does.
// Ranks with the same name share memory; ranks with different names do not, even on one
// machine. So a program can run on one machine as on several. Without WithHosts a host
// is a running kernel; a container that hides its processes is a host of its own. All
// ranks give the same names. Init returns an error unless each rank has a name that is not empty.
func WithHosts(names ...string) Option {
	return func(o *options) error { return o.setHosts(names) }
}

// setHosts sets the names of hosts by rank, for WithHosts and GRUN_HOSTS.
func (o *options) setHosts(names []string) error {
	if len(names) == 0 || slices.Contains(names, "") {
		return fmt.Errorf("hosts %q: want a name for each rank, such as a,a,b", names)
	}
	o.hosts = names
	return nil
}

// WithCores sets how many cores this host has for all of its ranks. Use it where that
// is less than grun may use, for instance in a container with a quota. Where ranks
// outnumber cores, ranks that do not map each other's memory choose algorithms with the
// fewest messages. All ranks of a host give the same number, 1 or more. Without this option it is the
// number of cores that the launcher, or the system, lets the ranks of the host use.
func WithCores(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("%d cores: %w: a host has at least one", n, ErrRange)
		}
		o.cores = n
		return nil
	}
}

// host returns the name of a rank's host. Ranks of one kernel are apart where grun calls
// their hosts by different names.
func (o *options) host(env bootstrap.Env) (string, error) {
	switch {
	case o.hosts == nil:
		return thisHost() + " " + env.Host, nil
	case len(o.hosts) != env.Size:
		return "", fmt.Errorf("%d hosts are named for %d ranks; give %s a name for each rank", len(o.hosts), env.Size, bootstrap.EnvHosts)
	}
	return o.hosts[env.Rank], nil
}

// oneHost reports whether all ranks of a job are on this rank's host, as far as is
// known before it joins.
func (o *options) oneHost(env bootstrap.Env) bool {
	elsewhere := func(name string) bool { return name != o.hosts[0] }
	return env.LocalSize == env.Size && !slices.ContainsFunc(o.hosts, elsewhere)
}

// thisHost returns a name of the kernel and of the processes that this one can see. A
// rank maps the memory of those processes.
func thisHost() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil { // a name that no other host has suffices
		name, _ := os.Hostname()
		return name
	}
	processes, _ := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(boot)) + " " + processes
}

// mayMap reports whether all members are on one host and may map each other's memory. All
// members get the same result.
func (t *Team) mayMap(cards []*teamCard) bool {
	host := func(h int) bool { return h == t.inner.Hosts[0] }
	maps := func(c *teamCard) bool { return c.MapsHost }
	return all(t.inner.Hosts, host) && all(cards, maps)
}

// mapsMembers connects to all members and reports whether this rank maps their memory.
func (t *Team) mapsMembers(ctx context.Context) bool {
	t.job.fabric.StartPeers(t.members, "", false)
	for _, rank := range t.members {
		if p, err := t.job.fabric.Peer(ctx, rank); err != nil || p.Bell() == nil {
			return false // a later call on the rank returns the error
		}
	}
	return true
}

// all reports whether f is true of each of list.
func all[T any](list []T, f func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !f(v) })
}

// perCore returns the most members for a core of their host, rounded up. All members get
// the same result.
func perCore(hosts []int, cards []*teamCard) (most int) {
	members := make(map[int]int)
	for _, host := range hosts {
		members[host]++
		cores := cards[slices.Index(hosts, host)].Cores
		most = max(most, (members[host]+cores-1)/cores)
	}
	return most
}

// common returns the value that all cards have, or else differ.
func common[T comparable](cards []*teamCard, of func(*teamCard) T, differ T) T {
	for _, card := range cards {
		if of(card) != of(cards[0]) {
			return differ
		}
	}
	return of(cards[0])
}

// boundTo returns the number of cores to which this process is bound, 0 if it may use all
// those of its host.
func boundTo(env bootstrap.Env) int {
	if cores := goruntime.NumCPU(); cores < env.LocalCores {
		return cores
	}
	return 0
}
