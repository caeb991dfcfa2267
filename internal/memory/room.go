package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A Room is what several processes of a host share so that together they take no
// more memory than is left: bytes that one of them has claimed and whose pages are
// not there yet, in a memfd of the process that made it.
//
//	gate    locked to claim: looks at what is left and adds to the claims
//	taking  locked shared from a claim until its pages are there
//
// The kernel gives up the locks of a process that dies. The claims of one are
// struck off when the next process has to wait for all that take memory.
//
// A nil Room is that of one process alone.
type Room struct {
	mem     *Imported
	fd      int // has locks of its own
	claims  *atomic.Int64
	sharers int64
	root    fs.FS
	mu      sync.Mutex // held from a claim to its end
}

// The bytes of the memfd that are locked.
const (
	gate   = 0
	taking = 1
)

// roomSize is the size of a Room's memfd.
const roomSize = 4096

// roomPatience bounds the wait for other processes that take memory, while none
// of them gets on: they may be stopped.
const (
	roomPatience = 10 * time.Second
	roomPause    = time.Millisecond // the longest between two looks
)

// NewRoom makes the memfd of a Room. It exists as long as a process has it open.
func NewRoom() (*Memfd, error) {
	m, err := NewMemfd("gopgas-room", roomSize)
	if err != nil {
		return nil, err
	}
	if err := m.Commit(0, roomSize); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// OpenRoom opens the Room whose memfd is at path, such as /proc/PID/fd/N, for one
// of at most so many processes.
func OpenRoom(path string, sharers int) (*Room, error) {
	mem, err := importPath(path, roomSize)
	if err != nil {
		return nil, fmt.Errorf("memory: opening what ranks of this host share, %s: %w", path, err)
	}
	fd, st, err := openRegular(path)
	if err == nil && st.Ino != mem.inode {
		closeFD(fd)
		err = ErrUnsealed
	}
	if err != nil {
		return nil, errors.Join(err, mem.Close())
	}
	return &Room{mem: mem, fd: fd, claims: wordAt(mem.mem), sharers: int64(max(sharers, 1)), root: os.DirFS("/")}, nil
}

// Close gives the Room up. Nothing may be claimed any more.
func (r *Room) Close() error {
	if r == nil {
		return nil
	}
	return errors.Join(unix.Close(r.fd), r.mem.Close())
}

// size is how many processes share the Room.
func (r *Room) size() int64 {
	if r == nil {
		return 1
	}
	return r.sharers
}

// headroom reads what host and cgroups have left.
func (r *Room) headroom() headroom {
	if r == nil {
		return readHeadroom(os.DirFS("/"))
	}
	return readHeadroom(r.root)
}

// A claim is memory that a process is taking.
type claim struct {
	room *Room
	left int64 // bytes whose pages are not there yet
}

// claim claims need bytes, where need is told what fits and may look more closely
// if that is too little. It waits for other processes only if the bytes fit
// without what those are taking. ErrNoMemory: they do not fit.
func (r *Room) claim(need func(fits int64) int64) (claim, headroom, error) {
	if r == nil {
		left := r.headroom()
		return claim{}, left, left.fit(need(left.fits()))
	}
	r.mu.Lock()
	c, left, err := r.enter(need)
	if err != nil {
		r.mu.Unlock()
	}
	return c, left, err
}

// enter claims with the mutex held.
func (r *Room) enter(need func(fits int64) int64) (claim, headroom, error) {
	if err := r.lock(gate, unix.F_WRLCK); err != nil {
		return claim{}, headroom{}, err
	}
	defer r.unlock(gate)
	left, others := r.headroom(), r.claims.Load()
	n := need(left.fits() - others)
	if n > left.fits()-others && others != 0 {
		// A part of the claims may be in use already, or that of a dead process.
		if err := r.lock(taking, unix.F_WRLCK); err != nil {
			return claim{}, left, err
		}
		r.claims.Store(0)
		left = r.headroom()
		n = need(left.fits())
	}
	if err := left.fit(n); err != nil {
		r.unlock(taking)
		return claim{}, left, err
	}
	if err := r.lock(taking, unix.F_RDLCK); err != nil {
		return claim{}, left, err
	}
	r.claims.Add(n)
	return claim{r, n}, left, nil
}

// took says that n more bytes have their pages.
func (c *claim) took(n int64) {
	if c.room != nil {
		n = min(n, c.left)
		c.left -= n
		c.room.claims.Add(-n)
	}
}

// end ends the claim, whether its pages are there or not.
func (c *claim) end() {
	if c.room != nil {
		c.took(c.left)
		c.room.unlock(taking)
		c.room.mu.Unlock()
	}
}

// lock waits for a lock as long as the others that take memory get on.
func (r *Room) lock(at int64, kind int16) error {
	seen, since := r.claims.Load(), time.Now()
	for pause := roomPause / 32; ; pause = min(2*pause, roomPause) {
		err := unix.FcntlFlock(uintptr(r.fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: at, Len: 1})
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if now := r.claims.Load(); now != seen {
			seen, since = now, time.Now()
		}
		if time.Since(since) > roomPatience {
			return fmt.Errorf("%w: other ranks of this host have been taking %d MiB for %v; is one of them stopped?", ErrNoMemory, seen>>20, roomPatience)
		}
		time.Sleep(pause)
	}
}

func (r *Room) unlock(at int64) {
	// Giving up a lock on an open descriptor does not fail.
	_ = unix.FcntlFlock(uintptr(r.fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Start: at, Len: 1})
}
