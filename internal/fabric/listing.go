package fabric

import (
	"math"
	"math/bits"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A rank lists its regions in its head block, which its peers map. A peer that knows a
// region's name finds the region there by loads: it sends no message, and the owner takes
// no part.
//
//	origin                               owner
//	                                    Register(name): fill an entry of the name's bucket
//	load the entries of the bucket -->
//	found: Map. Not found: a call
//
// The list has buckets of entries. A name belongs to one bucket. If that is full, the
// region is not listed, and peers send the owner a request. An entry is a cache line of words:
//
//	 0  version: odd while the owner changes the entry
//	 8  hash of name and provider, 16 bytes; zero in a free entry
//	24  address   32  key, 16 bytes   48  length   56  place beside the bell, 0 for none
//
// The owner alone writes, under the mutex of its regions. It never reads its list back, so
// a peer that scribbles there harms only itself and the peers that read: mapping checks
// what they read.
const (
	listBuckets = 16
	listEntries = 8 // of a bucket
	entrySize   = 64
	listSize    = listBuckets * listEntries * entrySize
)

// Words of an entry.
const (
	entryVersion = iota
	entryHash
	_
	entryAddr
	entryKeyHi
	entryKeyLo
	entryLength
	entryPlace
	entryWords
)

// A listing is the owner's record of its list.
type listing struct {
	bind *binding // the list has addresses of this provider; nil: no peer maps the list
	mem  []byte
	at   map[*Region]int // entries in use
	used [listBuckets * listEntries]bool
}

// init begins the list of a rank in mem, for a provider whose peers map memory.
func (l *listing) init(bindings []*binding, mem []byte) {
	for _, b := range bindings {
		if b.info.Memory.Maps {
			l.bind, l.mem, l.at = b, mem, map[*Region]int{}
			return
		}
	}
}

// add lists r if its bucket has room. Precondition of add and remove: the mutex of the
// regions is held.
func (l *listing) add(r *Region) {
	if l.bind == nil || r.mrs[l.bind] == nil {
		return
	}
	hash := hashOf(l.bind.name, r.name)
	for i := bucketOf(hash); i < bucketOf(hash)+listEntries; i++ {
		if l.used[i] {
			continue
		}
		l.used[i], l.at[r] = true, i
		where := regionReply{Addr: r.at(l.bind), Length: len(r.mem.Bytes)}
		l.store(i, [entryWords]uint64{entryHash: hash[0], entryHash + 1: hash[1], entryAddr: where.Addr.Addr,
			entryKeyHi: where.Addr.RKey.Hi, entryKeyLo: where.Addr.RKey.Lo, entryLength: uint64(where.Length), entryPlace: r.f.besideBell(r)})
		return
	}
}

// remove takes r off the list.
func (l *listing) remove(r *Region) {
	if i, listed := l.at[r]; listed {
		l.store(i, [entryWords]uint64{})
		l.used[i] = false
		delete(l.at, r)
	}
}

// store writes entry i. Its version is odd meanwhile, so that readers at other ranks try again.
// Precondition: the caller is the only writer.
func (l *listing) store(i int, words [entryWords]uint64) {
	word := func(n int) []byte { return l.mem[i*entrySize+8*n:] }
	version := atomics.Word64(word(entryVersion))
	version.Add(1) // pairs with the loads of Peer.listed
	for n := entryVersion + 1; n < entryWords; n++ {
		atomics.Word64(word(n)).Store(words[n])
	}
	version.Add(1)
}

// find finds a region that came with the response to the connection, or is in the peer's list.
func (p *Peer) find(name string) (rep regionReply, ok bool) {
	if w := p.wanted.Load(); w != nil && w.name == name && p.Err() == nil && p.wanted.CompareAndSwap(w, nil) {
		return w.at, true
	}
	return p.listed(name)
}

// listed finds a region in the peer's list. If the region is not there, or this rank does not map
// the list, ok is false.
func (p *Peer) listed(name string) (rep regionReply, ok bool) {
	list := p.head.Mem
	if len(list) < headSize || p.Err() != nil { // the call returns the peer's error
		return rep, false
	}
	list = list[headList:]
	hash := hashOf(p.bind.name, name)
	for i := bucketOf(hash); i < bucketOf(hash)+listEntries; i++ {
		word := func(n int) uint64 { return atomics.Word64(list[i*entrySize+8*n:]).Load() }
		version := word(entryVersion)
		if version&1 != 0 || word(entryHash) != hash[0] || word(entryHash+1) != hash[1] {
			continue
		}
		rep.Addr = driver.RemoteAddr{Addr: word(entryAddr), RKey: driver.Key{Hi: word(entryKeyHi), Lo: word(entryKeyLo)}}
		length := word(entryLength)
		rep.Length, rep.place = int(length), word(entryPlace)
		return rep, length <= math.MaxInt && word(entryVersion) == version
	}
	return rep, false
}

// hashOf returns the hash by which a region is listed, FNV-1a of 128 bits. It is not zero. Package hash/fnv
// would allocate.
func hashOf(provider, name string) [2]uint64 {
	const low, high = 0x13b, 1 << 24 // of the prime
	hash := [2]uint64{0x6c62272e07bb0142, 0x62b821756295c58d}
	add := func(c byte) {
		x := hash[1] ^ uint64(c)
		carry, product := bits.Mul64(low, x)
		hash = [2]uint64{carry + low*hash[0] + high*x, product}
	}
	for i := range len(provider) {
		add(provider[i])
	}
	add(0)
	for i := range len(name) {
		add(name[i])
	}
	hash[0] |= 1
	return hash
}

// bucketOf returns the first entry of the bucket.
func bucketOf(hash [2]uint64) int { return int(hash[1]%listBuckets) * listEntries }
