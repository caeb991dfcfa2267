//go:build linux

package memory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// OpenDevice maps all memory of a device: /dev/daxN.M, or resourceN of a PCI device below /sys. Peers
// of this host can import it by the descriptor. The mapping stays until [CloseDevice].
//
// Neither can be sealed. It cannot shrink; but if an administrator unbinds device-dax under a
// mapping, the next access to it ends the process.
func OpenDevice(path string) (driver.Memory, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return driver.Memory{}, fmt.Errorf("memory: opening %s: %w", path, err)
	}
	size, kind, err := deviceOf(fd)
	var mem []byte
	if err == nil {
		mem, err = mapShared(fd, size)
	}
	if err != nil {
		closeFD(fd)
		return driver.Memory{}, fmt.Errorf("memory: mapping %s: %w", path, err)
	}
	return driver.Memory{Kind: kind, Bytes: mem, FD: fd}, nil
}

// CloseDevice ends the mapping and its descriptor: slices of it read garbage.
func CloseDevice(m driver.Memory) error { return errors.Join(overlay(m.Bytes), unix.Close(m.FD)) }

// deviceOf returns size and kind of a device's memory, and refuses other files.
func deviceOf(fd int) (size int64, kind driver.Kind, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, 0, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFCHR {
		if !isDAX(&st) {
			return 0, 0, fmt.Errorf("%w: neither device-dax nor a PCI device's memory", ErrUnsealed)
		}
		text, err := os.ReadFile(folderOf(&st) + "/size")
		if err != nil {
			return 0, 0, err
		}
		size, err = strconv.ParseInt(strings.TrimSpace(string(text)), 0, 64)
		return size, driver.KindDAX, err
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil || !resourceOfPCI(name) {
		return 0, 0, fmt.Errorf("%w: neither device-dax nor a PCI device's memory", ErrUnsealed)
	}
	return st.Size, driver.KindBAR, nil
}

// folderOf returns the folder of a character device in sysfs.
func folderOf(st *unix.Stat_t) string {
	return fmt.Sprintf("/sys/dev/char/%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
}

// isDAX reports whether a character device is device-dax.
func isDAX(st *unix.Stat_t) bool {
	subsystem, _ := os.Readlink(folderOf(st) + "/subsystem") // "" without one
	return filepath.Base(subsystem) == "dax"
}

// resourceOfPCI reports whether a path names a resource of a PCI device, wherever sysfs is mounted.
func resourceOfPCI(path string) bool {
	return strings.Contains(path, "/devices/pci") && strings.HasPrefix(filepath.Base(path), "resource")
}

// NewHuge maps a sealed memfd of huge pages, rounded up to whole ones, and makes all pages present. The
// mapping stays until [CloseDevice]. It returns ErrNoMemory if the host has too few huge pages free.
func NewHuge(size int64) (driver.Memory, error) {
	rounded := (size + HugePage - 1) &^ (HugePage - 1)
	if size <= 0 || rounded < size {
		return driver.Memory{}, fmt.Errorf("memory: %w: %d bytes of huge pages", driver.ErrInvalid, size)
	}
	fd, err := unix.MemfdCreate("gopgas-huge", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_HUGETLB|unix.MFD_HUGE_2MB)
	if err != nil {
		return driver.Memory{}, fmt.Errorf("memory: creating a memfd of huge pages: %w", Descriptors(err))
	}
	mem, err := sizeAndMap(fd, rounded)
	if err == nil {
		err = again(func() error { return unix.Fallocate(fd, 0, 0, rounded) })
		if err = noRoom(err); errors.Is(err, ErrNoMemory) {
			err = fmt.Errorf("%w; raise /proc/sys/vm/nr_hugepages", err)
		}
		if err != nil {
			err = errors.Join(err, overlay(mem))
		}
	}
	if err != nil {
		closeFD(fd)
		return driver.Memory{}, fmt.Errorf("memory: %d bytes of huge pages: %w", rounded, err)
	}
	return driver.Memory{Kind: driver.KindHuge, Bytes: mem, FD: fd}, nil
}
