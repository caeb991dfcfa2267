package runtime

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

// WithHosts says on which host each rank is, by names in the order of ranks, as
// GRUN_HOSTS does: ranks of one name share memory, and others do not, whatever the
// machine. It is meant for trying on one machine what a program does on several.
// Without it a host is a running kernel, and a container that hides its processes
// is one of its own. All ranks say the same.
func WithHosts(names ...string) Option {
	return func(o *options) error { return o.setHosts(names) }
}

func (o *options) setHosts(names []string) error {
	if len(names) == 0 || slices.Contains(names, "") {
		return fmt.Errorf("hosts %q: want a name for each rank, such as a,a,b", names)
	}
	o.hosts = names
	return nil
}

// WithCores says how many cores this host has for all of its ranks, where that is
// less than grun may use, in a container with a quota for instance. Where ranks
// outnumber cores, those that do not map each other's memory take ways with the
// fewest messages. All ranks of a host say the same.
func WithCores(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("%d cores: a host has at least one", n)
		}
		o.cores = n
		return nil
	}
}

// host returns what tells a rank's host from others.
func (o *options) host(rank, size int) (string, error) {
	switch {
	case o.hosts == nil:
		return thisHost(), nil
	case len(o.hosts) != size:
		return "", fmt.Errorf("%d hosts are named for %d ranks; give %s a name for each rank", len(o.hosts), size, bootstrap.EnvHosts)
	}
	return o.hosts[rank], nil
}

// oneHost tells whether all ranks of a job are on this rank's host, as far as can be
// told before they have met.
func (o *options) oneHost(env bootstrap.Env) bool {
	elsewhere := func(name string) bool { return name != o.hosts[0] }
	return env.LocalSize == env.Size && !slices.ContainsFunc(o.hosts, elsewhere)
}

// thisHost names the kernel and the processes that this one can see: a rank maps
// memory of those.
func thisHost() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil { // it is good enough that others are not taken for this one
		name, _ := os.Hostname()
		return name
	}
	processes, _ := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(boot)) + " " + processes
}

// maps tells whether this rank maps the memory of all members: in a job that reaches
// nobody else, or, of a team within one host of several, after connecting to them.
func (t *Team) maps(ctx context.Context) bool {
	f := t.job.fabric
	if f.MapsAll() {
		return true
	}
	hosts := f.HostsOf(t.members)
	apart := slices.ContainsFunc(hosts, func(h int) bool { return h != hosts[0] })
	if t.job.world == nil || apart || !f.MapsHost() {
		return false
	}
	for _, rank := range t.members {
		if p, err := f.Peer(ctx, rank); err != nil || p.Bell() == nil {
			return false // what is wrong with the rank shows where it is needed
		}
	}
	return true
}

// hostsIn numbers the hosts that members' cards name, by their first members.
func hostsIn(cards []teamCard) []int {
	hosts := make([]int, len(cards))
	for i, card := range cards {
		hosts[i] = slices.IndexFunc(cards, func(c teamCard) bool { return c.Host == card.Host })
	}
	return hosts
}

// crowded tells whether members share cores, on some host. All find the same.
func crowded(hosts []int, cards []teamCard) bool {
	members := make(map[int]int)
	for _, host := range hosts {
		if members[host]++; members[host] > cards[slices.Index(hosts, host)].Cores {
			return true
		}
	}
	return false
}
