package device

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A Kind names the origin of memory.
type Kind = driver.Kind

// The kinds of memory that this package opens.
const (
	HugePages = driver.KindHuge
	DAX       = driver.KindDAX
	BAR       = driver.KindBAR
	Memfd     = driver.KindMemfd
	DMABuf    = driver.KindDMABuf
	GPU       = driver.KindGPU
)

// Errors of this package. Match them with errors.Is.
var (
	// ErrFull: the memory has no free range of the length.
	ErrFull = errors.New("no room in the memory of the device")
	// ErrTaken: a piece has a part of the range.
	ErrTaken = errors.New("a piece has this range")
	// ErrRange: a range that is not in the memory, or an offset that is no multiple of the page.
	ErrRange = errors.New("range is not in the memory of the device")
	// ErrClosed: the memory was closed, or the piece was freed.
	ErrClosed = errors.New("device memory was closed")
	// ErrNoDescriptor: the sender ended, or closed the connection, and had sent no descriptor.
	ErrNoDescriptor = memory.ErrNoDescriptor
	// ErrUnmappable: CPUs cannot map this memory, such as that of a dma-buf whose exporter does not permit it.
	ErrUnmappable = memory.ErrUnmappable
)

// A Fallback says what becomes of a window on a piece whose kind a provider refuses.
type Fallback uint8

// Bounce has peers reach the piece through memory of its owner's host over each provider that refuses the
// kind. An operation then waits until a CPU of the owner has copied its bytes. These bytes count as staged in
// `grun --stats`. Without Bounce the refusal is an error. It is one with Bounce,
// too, where devices apply atomics (GRUN_ATOMICS=nic).
const Bounce Fallback = 1

// About describes memory.
type About struct {
	Kind   Kind
	Path   string // by which it was opened; "" for huge pages
	Device string // address of the PCI device, such as 0000:00:10.0, if it is one
	Node   int    // NUMA node, -1 if the system does not say
	Size   int    // bytes
	Align  int    // pieces begin at a multiple
}

// Memory is one device's memory, as this process maps it. Its methods may be called from any goroutine.
type Memory struct {
	about About

	mu     sync.Mutex
	all    driver.Memory
	end    func() error // of the mapping
	pieces []*Piece     // by offset
	closed bool
}

// page is the granule of pieces, in bytes.
const page = 4096

// Open maps all memory of a device. path is /dev/daxN.M, or resourceN or resourceN_wc of a PCI device
// below /sys/bus/pci/devices; the device must be enabled, and mostly that takes root. Several
// processes may open one device and take different ranges of it, see [Memory.Take]. Kind: local.
func Open(path string) (*Memory, error) {
	all, err := memory.OpenDevice(path)
	if err != nil {
		return nil, fmt.Errorf("device: %w", err)
	}
	about := About{Kind: all.Kind, Path: path, Node: -1, Align: page}
	folder := filepath.Join("/sys/bus/dax/devices", filepath.Base(path))
	if all.Kind == BAR {
		if file, err := filepath.EvalSymlinks(path); err == nil {
			folder = filepath.Dir(file)
			about.Device = filepath.Base(folder)
		}
	}
	if text, err := os.ReadFile(filepath.Join(folder, "numa_node")); err == nil {
		if node, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			about.Node = node
		}
	}
	return Wrap(all, about, func() error { return memory.CloseDevice(all) }), nil
}

// Wrap makes Memory of a mapping that another package has made, of whatever kind. end ends the mapping. Kind:
// local.
func Wrap(all driver.Memory, about About, end func() error) *Memory {
	about.Size = len(all.Bytes)
	return &Memory{all: all, about: about, end: end}
}

// Huge makes memory of n bytes, rounded up to whole huge pages of 2 MiB, zeroed. It fails if the host
// has too few of them free, and names the remedy. Kind: local.
func Huge(n int) (*Memory, error) {
	all, err := memory.NewHuge(int64(n))
	if err != nil {
		return nil, fmt.Errorf("device: %w", err)
	}
	return Wrap(all, About{Kind: HugePages, Node: -1, Align: page}, func() error { return memory.CloseDevice(all) }), nil
}

// About describes the memory. Kind: local.
func (m *Memory) About() About { return m.about }

// Allocate takes the first free range of n bytes, rounded up to whole pages, and zeroes it. It returns
// [ErrFull] if there is none. It knows the pieces of this process only. Kind: local.
func (m *Memory) Allocate(n int) (*Piece, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n < 0 {
		return nil, m.fail("Allocate", fmt.Errorf("%d bytes: %w", n, ErrRange))
	}
	at, want := 0, roundUp(n)
	for _, p := range m.pieces {
		if p.offset-at >= want {
			break
		}
		at = p.offset + len(p.mem)
	}
	if want > m.about.Size-at {
		return nil, m.fail("Allocate", fmt.Errorf("%w: %d bytes of %d in one range", ErrFull, want, m.about.Size))
	}
	p, err := m.take(at, want)
	if err == nil {
		clear(p.mem)
	}
	return p, m.fail("Allocate", err)
}

// Take takes n bytes, rounded up to whole pages, at an offset. Their content stays. Processes that share a
// device agree on offsets, as a device/catalog does for them. It returns [ErrTaken] if a piece of this
// process has a part of them. Kind: local.
func (m *Memory) Take(offset, n int) (*Piece, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	want := roundUp(n)
	if offset < 0 || n < 0 || offset%page != 0 || want > m.about.Size-offset {
		return nil, m.fail("Take", fmt.Errorf("%d bytes at %d of %d: %w", n, offset, m.about.Size, ErrRange))
	}
	for _, p := range m.pieces {
		if offset < p.offset+len(p.mem) && p.offset < offset+want {
			return nil, m.fail("Take", fmt.Errorf("%d bytes at %d: %w", n, offset, ErrTaken))
		}
	}
	p, err := m.take(offset, want)
	return p, m.fail("Take", err)
}

// take enters a piece. The caller holds mu.
func (m *Memory) take(offset, n int) (*Piece, error) {
	if m.closed {
		return nil, ErrClosed
	}
	p := &Piece{of: m, offset: offset, mem: m.all.Bytes[offset : offset+n : offset+n]}
	i, _ := slices.BinarySearchFunc(m.pieces, offset, func(p *Piece, at int) int { return cmp.Compare(p.offset, at) })
	m.pieces = slices.Insert(m.pieces, i, p)
	return p, nil
}

// Close ends the mapping. It returns an error, and does nothing, while there are pieces. A second call
// does nothing. Kind: local.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil
	case len(m.pieces) > 0:
		return m.fail("Close", fmt.Errorf("%w: %d pieces are in use; free them first", ErrTaken, len(m.pieces)))
	}
	m.closed = true
	return m.fail("Close", m.end())
}

// fail adds the operation and the memory to an error.
func (m *Memory) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("device: %s of %v %s: %w", op, m.about.Kind, m.about.Path, err)
}

// A Piece is a range of memory that this process has taken.
type Piece struct {
	of     *Memory
	offset int
	mem    []byte
}

// About describes the memory that p is a piece of. Kind: local.
func (p *Piece) About() About { return p.of.about }

// Offset returns where p begins in its memory, in bytes. Kind: local.
func (p *Piece) Offset() int { return p.offset }

// Bytes returns the memory itself. A window on p owns it until its Free. Kind: local.
func (p *Piece) Bytes() []byte { return p.mem }

// Region describes p for registration; it is for package window. It returns [ErrClosed] after Free.
// Kind: local.
func (p *Piece) Region() (driver.Memory, error) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if !slices.Contains(p.of.pieces, p) {
		return driver.Memory{}, p.of.fail("use of a piece", ErrClosed)
	}
	r := p.of.all
	r.Bytes, r.Offset = p.mem, int64(p.offset)
	return r, nil
}

// Free gives the range back. No window may lie on it: its Free comes first. A second call returns
// [ErrClosed]. Kind: local.
func (p *Piece) Free() error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	i := slices.Index(p.of.pieces, p)
	if i < 0 {
		return p.of.fail("Free of a piece", ErrClosed)
	}
	p.of.pieces = slices.Delete(p.of.pieces, i, i+1)
	return nil
}

// roundUp returns whole pages of n bytes, one at least.
func roundUp(n int) int { return (max(n, 1) + page - 1) &^ (page - 1) }
