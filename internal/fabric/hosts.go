package fabric

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A Site says where a rank is and how others reach it.
type Site struct {
	Host      string            // ranks with one Host may map each other's memory
	Providers []string          // that the rank has open, in order of preference
	Lacks     map[string]string `json:",omitempty"` // causes by provider, of those that the rank has no device for
}

// Site returns the site of this rank.
func (f *Fabric) Site(host string) Site {
	return Site{Host: host, Providers: f.Providers(), Lacks: f.lacks}
}

// sites holds the sites of all ranks of the world.
type sites struct {
	open [][]string // providers by rank
	host []int      // by rank: a host has the number of its first rank
	near bool       // hosts are pretended, and no provider of the job reaches others
}

// SetSites tells where all ranks of the world are, by rank. Before the call all ranks count
// as on one host, with the providers of this rank. If the hosts are pretended and no
// provider of the job reaches others, the ranks use its providers all the same.
func (f *Fabric) SetSites(all []Site, pretended bool) {
	s := &sites{open: make([][]string, len(all)), host: make([]int, len(all)), near: pretended && f.staysOnHost()}
	first := map[string]int{}
	for rank, site := range all {
		if _, seen := first[site.Host]; !seen {
			first[site.Host] = rank
		}
		s.open[rank], s.host[rank] = site.Providers, first[site.Host]
	}
	f.sites.Store(s)
}

// HostsOf returns the hosts of ranks of the world.
func (f *Fabric) HostsOf(ranks []int) []int {
	host := make([]int, len(ranks))
	if s := f.sites.Load(); s != nil {
		for i, rank := range ranks {
			host[i] = s.host[rank]
		}
	}
	return host
}

// waysTo returns the bindings that may reach a rank, in order of preference: those that
// the rank has open as well. For a rank on another host it leaves out those that reach
// only this host. Both ends come to the same result.
func (f *Fabric) waysTo(rank int) []*binding {
	s := f.sites.Load()
	if s == nil {
		return f.bindings
	}
	apart := s.host[f.cfg.Rank] != s.host[rank] && !s.near
	var ways []*binding
	for _, b := range f.bindings {
		if slices.Contains(s.open[rank], b.name) && !(apart && b.info.SameHost) {
			ways = append(ways, b)
		}
	}
	return ways
}

// staysOnHost reports whether no provider of the job reaches other hosts.
func (f *Fabric) staysOnHost() bool {
	return len(f.lacks) == 0 && !slices.ContainsFunc(f.bindings, func(b *binding) bool { return !b.info.SameHost })
}

// WayTo returns the provider by which this rank tries to reach a rank first, "" if there
// is none.
func (f *Fabric) WayTo(rank int) string {
	ways := f.waysTo(rank)
	if len(ways) == 0 {
		return ""
	}
	return ways[0].name
}

// MapsHost reports whether this rank is likely to use the memory of ranks on this host
// directly. Connecting to them shows whether it does.
func (f *Fabric) MapsHost() bool {
	return f.Mapping() && slices.ContainsFunc(f.bindings, func(b *binding) bool { return b.info.SameHost && b.info.Memory.Maps })
}

// Lacks returns the causes, by provider, why this rank has not opened some of its
// providers.
func (f *Fabric) Lacks() map[string]string { return maps.Clone(f.lacks) }

// checkAtomics refuses devices that apply atomics beside other providers. Those have the
// CPUs update the same words, and neither sees the other's updates as atomic.
func (f *Fabric) checkAtomics() error {
	if f.Coherent() || len(f.bindings) == 1 {
		return nil
	}
	return fmt.Errorf("%w: devices cannot apply the atomics of a job with the providers %s, of which some leave them to the CPUs: "+
		"choose one provider, such as ibv, or atomics by cpu", driver.ErrUnsupported, strings.Join(f.Providers(), ","))
}
