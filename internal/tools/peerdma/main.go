//go:build linux

// Peerdma has NVMe disks read and write the memory of an NVMe controller by peer DMA, and compares the
// contents. It also compares the kernel's verdict on each pair with the prediction of package device/catalog:
//
//	go run ./internal/tools/peerdma
//
// It needs root, a kernel with PCI_P2PDMA (6.2 or later; Debian's from 7.0 on) and a controller with memory (CMB).
// The content of the disks may be lost: it writes their first 64 KiB. scripts/peerdma.sh runs it on an emulated
// machine.
//
// A line for each disk says the steps between the two devices, the way that catalog.Topology predicts, and what the kernel did.
// The exit code is 0 if all predictions were right, at least one transfer was made, and all bytes were.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/device/catalog"
)

// length is the size of a transfer, in bytes.
const length = 64 << 10

func main() {
	made, wrong, err := run()
	if err == nil && (made == 0 || wrong > 0) {
		err = fmt.Errorf("%d transfers were made, %d predictions were wrong", made, wrong)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peerdma:", err)
		os.Exit(1)
	}
}

// run tries all pairs of a controller with memory and a disk. It returns the number of transfers that
// succeeded and of predictions that were wrong.
func run() (made, wrong int, err error) {
	providers, err := filepath.Glob("/sys/bus/pci/devices/*/p2pmem/allocate")
	if err != nil {
		return 0, 0, err
	}
	if len(providers) == 0 {
		return 0, 0, errors.New("no PCI device publishes memory: the kernel has no PCI_P2PDMA, or no controller has memory")
	}
	disks, err := filepath.Glob("/sys/bus/pci/devices/*/nvme/nvme*/nvme*n1")
	if err != nil {
		return 0, 0, err
	}
	for _, path := range providers {
		m, w, err := provide(path, disks)
		made, wrong = made+m, wrong+w
		if err != nil {
			return made, wrong, err
		}
	}
	return made, wrong, nil
}

// provide maps the memory of the controller whose file for that is path, and tries it with each disk.
func provide(path string, disks []string) (made, wrong int, err error) {
	provider := filepath.Base(filepath.Dir(filepath.Dir(path)))
	memory, err := allocate(path)
	if err != nil {
		return 0, 0, fmt.Errorf("memory of %s: %w", provider, err)
	}
	for _, disk := range disks {
		done, right, err := try(provider, memory, disk)
		if err != nil {
			return made, wrong, err
		}
		if done {
			made++
		}
		if !right {
			wrong++
		}
	}
	return made, wrong, unix.Munmap(memory)
}

// try transfers between a controller's memory and a disk, and prints a line. The result done says that the
// kernel made the transfer, and right that the catalog predicted this.
func try(provider string, memory []byte, disk string) (done, right bool, err error) {
	client := strings.Split(disk, "/")[5]
	steps, way, err := catalog.Topology{}.Distance(provider, client)
	if err != nil {
		return false, false, err
	}
	err = transfer("/dev/"+filepath.Base(disk), memory)
	refused := errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EREMOTEIO)
	if err != nil && !refused {
		return false, false, fmt.Errorf("%s to %s: %w", provider, client, err)
	}
	done = err == nil
	right = done == (way <= catalog.HostBridge)
	verdict := "right"
	if !right {
		verdict = "WRONG"
	}
	fmt.Printf("memory of %s, disk %s: %d steps, %v; kernel: %s; prediction %s\n", provider, client, steps, way, outcome(err), verdict)
	return done, right, nil
}

// outcome says what became of a transfer.
func outcome(err error) string {
	if err != nil {
		return "refused (" + err.Error() + ")"
	}
	return "transferred both ways, bytes right"
}

// allocate maps memory that a device publishes to its peers.
func allocate(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return unix.Mmap(int(file.Fd()), 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

var errContents = errors.New("the bytes differ")

// transfer has a disk read memory and write to it by DMA. It looks at the disk through the host's memory, too.
func transfer(path string, memory []byte) error {
	disk, err := os.OpenFile(path, os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return err
	}
	defer disk.Close()
	host, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(host) }()
	want := make([]byte, length)
	for i := range want {
		want[i] = byte(i*7 + i>>8)
	}
	copy(memory, want)
	if _, err := disk.WriteAt(memory, 0); err != nil {
		return errno(err)
	}
	clear(memory)
	if _, err := disk.ReadAt(host, 0); err != nil {
		return err
	}
	if _, err := disk.ReadAt(memory, 0); err != nil {
		return errno(err)
	}
	if !bytes.Equal(host, want) || !bytes.Equal(memory, want) {
		return errContents
	}
	return nil
}

// errno returns the system's error behind err.
func errno(err error) error {
	var number unix.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}
