package fabric

import (
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// regionRequest and regionReply are the messages of the "region" service.
type regionRequest struct {
	Provider, Name string
	ID             uint64 // instead of the name, unless 0
	Await          bool   // have the owner tell when it is there
	Stripe         int    `json:",omitempty"` // of the connection that goes to the region
}

// A regionReply says where a region lies, or that it is not there.
type regionReply struct {
	Addr   driver.RemoteAddr
	Length int
	Absent bool         // not there yet
	Left   bool         // and the rank makes no more calls
	Bounce *bounceReply `json:",omitempty"` // the memory is reached through it
	place  uint64       // beside the owner's bell, as its list has it; 0: none
}

// regionOver returns the address of r over b for a rank, and opens a stage if b refused r. Either may be nil,
// and b may not be of those with which r is registered.
func (f *Fabric) regionOver(b *binding, r *Region, from int, req regionRequest) (rep regionReply, err error) {
	if r == nil || b == nil || r.mrs[b] == nil && r.bounces == nil {
		return regionReply{}, fmt.Errorf("no region %q (%d) over %q here", req.Name, req.ID, req.Provider)
	}
	rep = regionReply{Addr: r.at(b), Length: len(r.mem.Bytes)}
	if bounced(rep.Addr) {
		rep.Bounce, err = r.bounces.open(f.ctx, b, r.name, inboundKey{from, req.Stripe})
	}
	return rep, err
}

// at returns the address of r over b.
func (r *Region) at(b *binding) driver.RemoteAddr {
	if mr := r.mrs[b]; mr != nil {
		return mr.Remote(0).Add(uint64(r.offset))
	}
	return driver.RemoteAddr{Addr: uint64(r.offset), RKey: driver.Key{Hi: bouncedKey, Lo: r.id}}
}
