package fabric

import "slices"

// SetHosts sets the host of each rank of the world: ranks with one number share a host.
// Before the call all ranks count as on one host.
func (f *Fabric) SetHosts(host []int) { f.hosts.Store(&host) }

// HostsOf returns the hosts of ranks of the world.
func (f *Fabric) HostsOf(ranks []int) []int {
	host := make([]int, len(ranks))
	if all := f.hosts.Load(); all != nil {
		for i, rank := range ranks {
			host[i] = (*all)[rank]
		}
	}
	return host
}

// waysTo returns the bindings that may reach a rank, in order of preference. For a rank on
// another host it leaves out those that reach only this host, unless there are no more.
func (f *Fabric) waysTo(rank int) []*binding {
	if host := f.HostsOf([]int{f.cfg.Rank, rank}); host[0] == host[1] {
		return f.bindings
	}
	var far []*binding
	for _, b := range f.bindings {
		if !b.info.SameHost {
			far = append(far, b)
		}
	}
	if far == nil {
		return f.bindings
	}
	return far
}

// MapsHost reports whether this rank is likely to use the memory of ranks on this host
// directly. Connecting to them shows whether it does.
func (f *Fabric) MapsHost() bool {
	return f.Mapping() && slices.ContainsFunc(f.bindings, func(b *binding) bool { return b.info.SameHost && b.info.Memory.Maps })
}
