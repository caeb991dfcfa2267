//go:build linux

// Vm runs a command on a machine with RDMA, or on two: a Linux with the kernel's software
// RDMA device (rdma_rxe), booted in QEMU under emulation. It makes that machine
// from packages of the Debian that it runs on. So it needs only apt, and root or
// a sudo that asks nothing; it never needs /dev/kvm.
//
//	go run ./internal/tools/vm [flags] -- COMMAND [ARG...]
//	go run ./internal/tools/vm -prepare
//
//	go run ./internal/tools/vm -- rdma link show
//	go run ./internal/tools/vm -- ibv_devinfo -v
//	CGO_ENABLED=1 go test -tags ibverbs -c -o .cache/ibv.test ./verbs/ibv
//	go run ./internal/tools/vm -env GOPGAS_IBV_REQUIRED=1 -- .cache/ibv.test -test.v
//	go run ./internal/tools/vm -- sh -c 'ib_write_lat -d rxe0 & sleep 1; ib_write_lat -d rxe0 127.0.0.1'
//
// # What the command finds
//
// The folder -share (default: the current one) under the path it has outside,
// writable, as its working directory. The device rxe0 on the loopback interface,
// with an IPv4-mapped GID of 127.0.0.1. Root's rights, two processors, a gigabyte
// of memory, /dev/shm and /tmp. The commands of busybox, and /bin/ip, rdma, strace,
// ibv_devices, ibv_devinfo, ib_write_lat, ib_read_lat and ib_atomic_lat. Other
// programs need -bin; vm adds the libraries of COMMAND and of every -bin.
//
// # Two machines
//
// With -machines 2 a second machine runs beside the first, on one network. Both share the
// folder and all programs. COMMAND runs on vm1; ssh runs others on vm2, and back:
//
//	go run ./internal/tools/vm -machines 2 -- ssh vm2 rdma link show
//
// Their device rxe0 is on eth0. Machine N has the addresses 10.0.0.N, which its name stands for, and
// 10.0.1.N. A command may disturb one of them without the other. Lines of the second machine's
// kernel begin with "vm2: ". Both end with COMMAND.
//
// # Memory of devices
//
// -dax and -bar give each machine memory that is no memory of the system: a persistent-memory device as
// device-dax, whose pages an RDMA device registers, and the memory of a PCI device, which none does:
//
//	go run ./internal/tools/vm -dax 64 -bar 16 -- ls -l /dev/dax0.0 /sys/bus/pci/devices/0000:00:10.0/resource2
//
// With -nvme the machine has three NVMe disks, and the first one's controller has memory that other devices reach
// by peer DMA. The second stands below the same PCIe switch, the third below another root port. That needs a newer
// kernel, whose packages lie in the folder of -packages; scripts/peerdma.sh fetches them.
//
// # Another architecture
//
// With -arch arm64 the machine has a processor of that kind, Debian's kernel for it, and busybox. It
// has no RDMA device. Programs of COMMAND and -bin are static and made for it:
//
//	GOARCH=arm64 CGO_ENABLED=0 go test -c -o .cache/wait.test ./internal/wait
//	go run ./internal/tools/vm -arch arm64 -- .cache/wait.test
//
// # Output
//
// Standard output shows, line by line, the output of the command, its standard error, and the
// kernel's complaints. The exit code is the command's. It is 124 if the command printed nothing for
// -timeout, and 125 if no machine could run it. (go run turns every code but 0 into 1.)
//
// # How it works
//
//	arch.go       what differs between architectures
//	packages.go   what apt has to install, and which kernel there is
//	kernel.go     the kernel's package -> vmlinux and modules, in the cache
//	vmlinux.go    vmlinux out of vmlinuz: saves the guest unpacking it, half its boot
//	modules.go    the modules that the wanted ones need, in order of loading
//	libraries.go  the libraries that programs need
//	image.go      what is in the initramfs, and init.sh, the guest's first process
//	cpio.go       the format of an initramfs
//	qemu.go       the machine: boots, relays the console, ends
//	network.go    two machines on a network, and their ssh
//
// The first run downloads about 100 MB and takes a minute. Later runs find the
// kernel in -cache, under the name of its version, and boot in about 4
// seconds, or 20 beside other programs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Exit codes of timeout(1), which also runs commands for their callers.
const (
	exitTimeout = 124
	exitFailed  = 125
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	code := exitFailed
	if err == nil {
		ctx, cancel := context.WithCancel(context.Background())
		go orphaned(cancel)
		code, err = run(ctx, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
	}
	os.Exit(code)
}

// run makes the machine and runs the command. It returns the exit code.
func run(ctx context.Context, o options, out io.Writer) (int, error) {
	if err := install(ctx, o.arch.packages); err != nil {
		return exitFailed, err
	}
	k, err := o.kernel(ctx)
	if err != nil {
		return exitFailed, err
	}
	if o.prepare {
		return 0, nil
	}
	image, err := makeImage(o, k)
	if err != nil {
		return exitFailed, err
	}
	defer image.Close()
	return bootAll(ctx, o, k.vmlinux, image, out)
}

// kernel returns the kernel to boot.
func (o *options) kernel(ctx context.Context) (kernel, error) {
	if o.given == "" {
		return prepareKernel(ctx, o.cache, o.arch.source(o.cache))
	}
	with := *o.arch
	with.modules = append(slices.Clone(with.modules), "nvme")
	return with.source(o.cache).givenKernel(ctx, o.cache, o.given)
}

// orphaned calls gone when the process that started this one has ended: "go run"
// ends at a SIGTERM without telling its child.
func orphaned(gone func()) {
	for parent := os.Getppid(); parent == os.Getppid(); {
		time.Sleep(time.Second)
	}
	gone()
}
