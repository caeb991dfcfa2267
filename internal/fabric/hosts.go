package fabric

import "slices"

// SetHosts tells on which host each rank of the world is: those of one number share
// one. Before it is called all ranks count as on one host.
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

// waysTo returns what may reach a rank, in order of preference: not what reaches
// ranks of this host only if that is on another, unless there is nothing else.
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

// MapsHost tells whether memory of other ranks on this host is likely to be used
// directly. Connecting to them shows whether it is.
func (f *Fabric) MapsHost() bool {
	return f.Mapping() && slices.ContainsFunc(f.bindings, func(b *binding) bool { return b.info.SameHost && b.info.Memory.Maps })
}
