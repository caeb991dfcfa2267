package ibv

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/gopgas/gopgas/verbs/driver"
)

// gidType is the framing of packets to a GID.
type gidType uint8

const (
	gidInfiniBand gidType = iota
	gidRoCEv1
	gidRoCEv2
)

func (t gidType) String() string {
	return [...]string{"InfiniBand", "RoCE v1", "RoCE v2"}[t]
}

// A gidEntry is one row of a port's GID table.
type gidEntry struct {
	index int
	typ   gidType
	gid   gid
}

func (g gid) addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

func (g gid) String() string { return g.addr().String() }

// preference orders entries, the best first: routable ones before those of
// one link, and IPv4 first since it is set up by an administrator.
func (e gidEntry) preference() int {
	p := 0
	switch addr := e.gid.addr(); {
	case addr.Is4():
	case addr.IsLinkLocalUnicast():
		p = 2
	default:
		p = 1
	}
	if e.typ != gidRoCEv2 {
		p += 3
	}
	return p
}

// chooseGID returns the entry that want names by index or address, or the best
// one for an empty want.
func chooseGID(table []gidEntry, want string) (gidEntry, error) {
	if len(table) == 0 {
		return gidEntry{}, fmt.Errorf("%w: ibv: the port has no GID: give its network interface an address", driver.ErrInvalid)
	}
	best := slices.MinFunc(table, func(a, b gidEntry) int { return cmp.Compare(a.preference(), b.preference()) })
	if want == "" {
		return best, nil
	}
	match := func(gidEntry) bool { return false }
	if index, err := strconv.Atoi(want); err == nil {
		match = func(e gidEntry) bool { return e.index == index }
	} else if addr, err := netip.ParseAddr(want); err == nil {
		match = func(e gidEntry) bool { return e.gid.addr() == addr.Unmap() && e.typ >= best.typ }
	}
	if i := slices.IndexFunc(table, match); i >= 0 {
		return table[i], nil
	}
	return gidEntry{}, fmt.Errorf("%w: ibv: the port has no GID %q; it has %v", driver.ErrInvalid, want, table)
}

func (e gidEntry) String() string { return fmt.Sprintf("%d: %v %v", e.index, e.typ, e.gid) }
