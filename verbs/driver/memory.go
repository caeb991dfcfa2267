package driver

import "fmt"

// Kind names the origin of memory.
type Kind uint8

const (
	// KindHeap is memory of the Go heap, or any that only this process maps.
	KindHeap Kind = iota
	// KindMemfd is a mapping of a sealed memfd, which peers of the same host
	// can map as well.
	KindMemfd
	// KindHuge is a mapping of a sealed memfd of huge pages.
	KindHuge
	// KindDAX is a mapping of device-dax: a device's memory that has pages of the system.
	KindDAX
	// KindBAR is a mapping of a PCI device's memory, which has none.
	KindBAR
	// KindDMABuf is a mapping of a dma-buf, which only a device that imports such can register. Peers cannot open
	// it by its owner's descriptor: the owner sends them one.
	KindDMABuf
	// KindGPU is memory of a GPU, which CPUs do not map. No device registers it by its bytes.
	KindGPU
)

var kindNames = [...]string{"heap", "memfd", "huge pages", "device-dax", "BAR", "dma-buf", "GPU"}

// String returns the kind in words.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Mappable reports whether peers of the same host can map memory of the kind by its owner's descriptor.
func (k Kind) Mappable() bool { return k != KindHeap && k != KindDMABuf && k != KindGPU }

// Paged reports whether memory of the kind has pages of the system, which a device without
// knowledge of other devices can register.
func (k Kind) Paged() bool { return k != KindBAR && k != KindDMABuf && k != KindGPU }

// Memory describes a piece of memory that can be registered.
type Memory struct {
	Kind   Kind
	Bytes  []byte // as the CPU sees it
	FD     int    // of any kind but KindHeap: descriptor of the memfd, the device or the dma-buf
	Offset int64  // likewise: where Bytes starts within it
	Demand Demand // for the bytes that occupy no memory yet
	Behind Extents
}

// A Demand describes memory of which only a part occupies memory. The zero Demand is that of memory which
// all does.
type Demand struct {
	Present int // bytes that occupy memory, from the first on
	// Commit has the first n bytes occupy memory. A device with [MemoryInfo.OnDemand] calls it ahead of a
	// peer's access to more than Present bytes. Another one needs all bytes at registration. Commit may be called
	// from any goroutine. It does not wait for the device.
	Commit func(n int) error
}

// Extents are further memory of a region, with addresses behind its Bytes: one extent after the other. The zero
// Extents are none. An access lies in one extent, or in Bytes.
type Extents struct {
	Count, Each int // each has Each bytes
	// Make returns the memory of an extent, the same each time. A device with [MemoryInfo.OnDemand] calls it ahead of
	// a peer's first access there. Other devices refuse regions with extents. Make may be called from any goroutine.
	// It does not wait for the device.
	Make func(extent int) (Memory, error)
}

// Access is a set of rights, as in ibv_reg_mr. Local read is always granted.
type Access uint8

const (
	LocalWrite Access = 1 << iota
	RemoteWrite
	RemoteRead
	RemoteAtomic

	// AllAccess has all rights; windows register with it.
	AllAccess = LocalWrite | RemoteWrite | RemoteRead | RemoteAtomic
)

// String returns the rights, apart by bars.
func (a Access) String() string {
	s := ""
	for i, name := range []string{"local-write", "remote-write", "remote-read", "remote-atomic"} {
		if a&(1<<i) != 0 {
			if s != "" {
				s += "|"
			}
			s += name
		}
	}
	if s == "" {
		return "local-read"
	}
	return s
}

// A Key names a registration. Providers with 32-bit keys use Lo alone. The
// zero Key is never handed out.
type Key struct{ Hi, Lo uint64 }

// String returns the key in hex.
func (k Key) String() string { return fmt.Sprintf("%016x%016x", k.Hi, k.Lo) }

// A RemoteAddr is a place in a peer's registered memory: a number, never a
// pointer. Addr counts from the MR's own [MR.Addr].
type RemoteAddr struct {
	Addr uint64
	RKey Key
}

// Add returns the address n bytes further on.
func (r RemoteAddr) Add(n uint64) RemoteAddr { return RemoteAddr{Addr: r.Addr + n, RKey: r.RKey} }

// An MR is a registered memory region.
type MR interface {
	Addr() uint64 // the remote address of the first byte
	LKey() Key
	RKey() Key
	Close() error // afterward the keys are invalid here and at every peer
}
