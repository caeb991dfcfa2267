//go:build linux

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

// Reservations let several processes of a host commit memory so that together they take
// no more than the host has left. All of them map a memfd that counts the reserved
// bytes: those that a process commits now and whose pages are not there yet. Processes
// lock two bytes of the memfd:
//
//	deciding    by the process that reads how much is left and reserves
//	committing  shared, by each process from its reservation until the pages are there
//
// The kernel unlocks both when a process dies. The next process that finds no other
// one committing takes the dead process's bytes off the count.
//
// The memfd also has a table of cards ([Reservations.Publish]). Nil Reservations serve one process
// alone.
type Reservations struct {
	mem       *Imported
	fd        int           // has locks of its own
	bytes     *atomic.Int64 // reserved by all processes
	processes int64
	root      fs.FS
	mu        sync.Mutex // held from a reservation to its end
}

// The bytes of the memfd that are locked.
const (
	deciding   = 0
	committing = 1
)

// reservationsSize is the size of the memfd without cards.
const reservationsSize = 4096

// lockPatience bounds the wait for other processes that commit memory, while none
// of them makes progress: they may be stopped.
const (
	lockPatience = 10 * time.Second
	lockPause    = time.Millisecond // the longest between two tries
)

// NewReservations makes the memfd of Reservations, with places for the cards of so many processes.
// It exists as long as a process has it open.
func NewReservations(processes int) (*Memfd, error) {
	size := int64(reservationsSize + min(max(processes, 0), maxCards)*cardSize)
	m, err := NewMemfd("gopgas-reservations", size)
	if err != nil {
		return nil, err
	}
	if err := m.Commit(0, size); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// OpenReservations opens the memfd at path, such as /proc/PID/fd/N. At most so many
// processes share it.
func OpenReservations(path string, processes int) (*Reservations, error) {
	mem, err := importPath(path, reservationsSize)
	if err != nil {
		return nil, fmt.Errorf("memory: opening the reservations of this host's ranks, %s: %w", path, err)
	}
	fd, st, err := openRegular(path)
	if err == nil && st.Ino != mem.inode {
		closeFD(fd)
		err = ErrUnsealed
	}
	if err != nil {
		return nil, errors.Join(err, mem.Close())
	}
	return &Reservations{mem: mem, fd: fd, bytes: wordAt(mem.mem), processes: int64(max(processes, 1)), root: os.DirFS("/")}, nil
}

// Close ends this process's part. The process reserves nothing any more.
func (r *Reservations) Close() error {
	if r == nil {
		return nil
	}
	return errors.Join(unix.Close(r.fd), r.mem.Close())
}

// sharers returns the number of processes that share r.
func (r *Reservations) sharers() int64 {
	if r == nil {
		return 1
	}
	return r.processes
}

// headroom reads the memory that host and cgroups have left.
func (r *Reservations) headroom() headroom {
	if r == nil {
		return readHeadroom(os.DirFS("/"))
	}
	return readHeadroom(r.root)
}

// A reservation is memory that a process commits.
type reservation struct {
	of   *Reservations
	left int64 // reserved bytes whose pages are not there yet
}

// reserve reserves need(fits) bytes, where fits is the memory left; need may look
// more closely if that is too little. It waits for other processes only if the bytes
// would fit without theirs. It returns ErrNoMemory if they do not fit.
func (r *Reservations) reserve(need func(fits int64) int64) (reservation, headroom, error) {
	if r == nil {
		left := r.headroom()
		return reservation{}, left, left.fit(need(left.fits()))
	}
	r.mu.Lock()
	mine, left, err := r.reserveLocked(need)
	if err != nil {
		r.mu.Unlock()
	}
	return mine, left, err
}

// reserveLocked is reserve with the mutex held.
func (r *Reservations) reserveLocked(need func(fits int64) int64) (reservation, headroom, error) {
	if err := r.lock(deciding, unix.F_WRLCK); err != nil {
		return reservation{}, headroom{}, err
	}
	defer r.unlock(deciding)
	left, others := r.headroom(), r.bytes.Load()
	n := need(left.fits() - others)
	if n > left.fits()-others && others != 0 {
		// The pages of some reserved bytes may be there already, or their process may
		// be dead.
		if err := r.lock(committing, unix.F_WRLCK); err != nil {
			return reservation{}, left, err
		}
		r.bytes.Store(0)
		left = r.headroom()
		n = need(left.fits())
	}
	if err := left.fit(n); err != nil {
		r.unlock(committing)
		return reservation{}, left, err
	}
	if err := r.lock(committing, unix.F_RDLCK); err != nil {
		return reservation{}, left, err
	}
	r.bytes.Add(n)
	return reservation{r, n}, left, nil
}

// committed takes n bytes, whose pages are there now, off the reservation.
func (v *reservation) committed(n int64) {
	if v.of != nil {
		n = min(n, v.left)
		v.left -= n
		v.of.bytes.Add(-n)
	}
}

// end ends the reservation, even if its pages are not there.
func (v *reservation) end() {
	if v.of != nil {
		v.committed(v.left)
		v.of.unlock(committing)
		v.of.mu.Unlock()
	}
}

// lock waits for a lock as long as other processes that commit memory make progress.
func (r *Reservations) lock(at int64, kind int16) error {
	seen, since := r.bytes.Load(), time.Now()
	for pause := lockPause / 32; ; pause = min(2*pause, lockPause) {
		err := unix.FcntlFlock(uintptr(r.fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: at, Len: 1})
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if now := r.bytes.Load(); now != seen {
			seen, since = now, time.Now()
		}
		if time.Since(since) > lockPatience {
			return fmt.Errorf("%w: other ranks of this host have been committing %d MiB for %v; is one of them stopped?", ErrNoMemory, seen>>20, lockPatience)
		}
		time.Sleep(pause)
	}
}

// unlock releases the lock of the byte at an offset.
func (r *Reservations) unlock(at int64) {
	// Unlocking an open descriptor does not fail.
	_ = unix.FcntlFlock(uintptr(r.fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Start: at, Len: 1})
}
