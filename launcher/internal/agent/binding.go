//go:build linux

package agent

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopgas/gopgas/internal/cgroup"
	"golang.org/x/sys/unix"
)

// A Binding selects the cores that a rank may run on.
type Binding int

// Bindings. Ranks of a host take cores or nodes in order, and several neighbors take one where ranks outnumber them.
const (
	BindNone Binding = iota // all that the agent may run on
	BindCore                // one physical core each
	BindNUMA                // one NUMA node each
)

// ParseBinding reads none, core or numa.
func ParseBinding(text string) (Binding, error) {
	switch text {
	case "", "none":
		return BindNone, nil
	case "core":
		return BindCore, nil
	case "numa":
		return BindNUMA, nil
	}
	return BindNone, fmt.Errorf("%w: bind to %q; choose none, core or numa", ErrSpec, text)
}

// A placement deals sets of cores out to the ranks of this host.
type placement struct {
	all   unix.CPUSet   // cores that this process may use
	sets  []unix.CPUSet // in the order of the ranks that take them; none: unbound
	quota float64       // cores' time that all ranks together may use
}

// newPlacement reads the topology under sys, normally /sys/devices/system.
func newPlacement(b Binding, sys string) (*placement, error) {
	p := &placement{quota: cgroup.Quota(os.DirFS("/"))}
	if err := unix.SchedGetaffinity(0, &p.all); err != nil {
		return nil, fmt.Errorf("read affinity mask: %w", err)
	}
	var lists []string
	switch b {
	case BindCore:
		for cpu := range len(p.all) * 64 {
			if p.all.IsSet(cpu) {
				lists = append(lists, readList(filepath.Join(sys, fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", cpu)), strconv.Itoa(cpu)))
			}
		}
		lists = unique(lists)
	case BindNUMA:
		nodes, _ := filepath.Glob(filepath.Join(sys, "node/node[0-9]*/cpulist"))
		slices.SortFunc(nodes, byNumber)
		for _, node := range nodes {
			lists = append(lists, readList(node, ""))
		}
	}
	for _, list := range lists {
		set, err := parseCPUList(list)
		if err != nil {
			return nil, err
		}
		for i := range set {
			set[i] &= p.all[i]
		}
		if set.Count() > 0 {
			p.sets = append(p.sets, set)
		}
	}
	return p, nil
}

// byNumber orders node2 before node10.
func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// unique drops repetitions: siblings of one core name the same list.
func unique(lists []string) []string {
	var kept []string
	for _, l := range lists {
		if !slices.Contains(kept, l) {
			kept = append(kept, l)
		}
	}
	return kept
}

// readList returns the list of cores or nodes in a file of the kernel, or otherwise.
func readList(path, otherwise string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return otherwise
	}
	return strings.TrimSpace(string(b))
}

// of returns the set of cores of the i-th of this host's ranks, nil if they are not bound. The number
// is that of the cores that the rank may use. Where ranks outnumber the sets, those with neighboring
// numbers share one: members of a team mostly exchange data with neighbors (ADR 104).
func (p *placement) of(i, ranks int) (cpus *unix.CPUSet, cores int) {
	if len(p.sets) == 0 {
		return nil, p.within(p.all.Count())
	}
	set := &p.sets[i*len(p.sets)/max(ranks, len(p.sets))]
	return set, p.within(set.Count())
}

// within returns cores, or the part of them that the quota allows, rounded up as
// the Go runtime does for GOMAXPROCS.
func (p *placement) within(cores int) int {
	return int(min(float64(cores), math.Ceil(p.quota)))
}

// shared returns how many ranks can keep a core busy at the same time.
func (p *placement) shared() int {
	return int(max(1, min(float64(p.all.Count()), math.Floor(p.quota))))
}

// A thread of a rank's Go runtime looks at the others every 20 us for a while after each wait
// of the rank. With 128 ranks on 2 cores it caused 113 of 130 wakes in an exchange through the
// launcher (ADR 80). Timer slack makes these wakes rarer.
const (
	rankSlack = 50 * time.Microsecond // of each rank of a core; Linux gives a process alone as much
	mostSlack = 10 * time.Millisecond // the longest pause of that thread
)

// slack returns the timer slack of ranks of this host; 0: that of the agent. If ranks outnumber
// cores, the timers of all ranks of a core together wake it as often as those of one rank.
func (p *placement) slack(ranks int) time.Duration {
	if ranks <= p.shared() {
		return 0
	}
	return min(rankSlack*time.Duration(ranks)/time.Duration(p.shared()), mostSlack)
}

// parseCPUList reads the kernel's lists: 0-3,8,10-11.
func parseCPUList(list string) (set unix.CPUSet, err error) {
	for item := range strings.SplitSeq(list, ",") {
		if item == "" {
			continue
		}
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from < 0 || to < from || to >= len(set)*64 {
			return set, fmt.Errorf("%w: list of cores %q", ErrSpec, list)
		}
		for cpu := from; cpu <= to; cpu++ {
			set.Set(cpu)
		}
	}
	return set, nil
}
