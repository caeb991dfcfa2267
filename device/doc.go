// Package device opens memory that is not of this rank's heap: huge pages, the memory of
// persistent-memory devices (device-dax), and the memory of PCI devices (a BAR). A window's elements
// may lie there, so that a put goes from one device's memory to another's and not through the heap:
//
//	m, err := device.Open("/dev/dax0.0")       // or .../resource2 below /sys/bus/pci/devices
//	piece, err := m.Allocate(64 << 20)
//	w, err := window.Allocate[float64](ctx, world, n, window.On(piece))
//	...
//	err = w.Free(ctx)
//	err = piece.Free()
//	err = m.Close()
//
// Only elements lie in a piece. Locks, slots and the words that wake a rank stay in its heap. A poll
// of device memory would cross a bus, and some of it has no atomics of the CPU.
//
// Which provider carries a kind:
//
//	kind          shm              tcp        ibv
//	huge pages    mapped           copied     registered
//	device-dax    mapped           copied     registered
//	BAR           mapped           copied     refused by window.Allocate: driver.ErrKind
//	dma-buf       refused          copied     registered by devices that import it, else refused
//
// No provider replaces a refusal by a copy through the host, unless the program asks for [Bounce].
// [window.Window.Path] says which way operations go.
//
// [Memory.Send] hands the descriptor of memory to another process of the host, and [Receive] maps it there. So
// processes share memory that has no path: a memfd, or a dma-buf, which peers cannot open by its
// owner's descriptor. device/catalog does so among the ranks of a team. [OpenDescriptor] takes the file of
// another library.
//
// If an administrator takes a device away, such as by unbinding device-dax, the next access to its
// memory ends the process. The promise that slices of a window never fault holds for the heap alone.
//
// [window.Window.Path]: https://pkg.go.dev/github.com/gopgas/gopgas/window#Window.Path
package device
