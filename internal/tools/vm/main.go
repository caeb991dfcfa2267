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
// kernel in -cache, under the name of its version, and boot after a second.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Exit codes of timeout(1), which also runs commands for their callers.
const (
	exitTimeout = 124
	exitFailed  = 125
)

// options holds the flags.
type options struct {
	arch     *arch
	command  []string
	env      []string // NAME=VALUE
	programs []string // files that the guest has in /bin
	share    string   // a folder, absolute
	cache    string   // a folder, absolute
	memory   int      // MiB
	cpus     int
	machines int    // 1, or 2 on a network
	dax, bar int    // MiB of memory of devices; 0: none
	nvme     int    // MiB of memory of an NVMe controller; 0: none
	given    string // a folder with a kernel's packages; "": the distribution's
	cpu      string // QEMU's; "": that of the architecture
	timeout  time.Duration
	verbose  bool
	prepare  bool // prepare, and run nothing
}

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

const usage = `Runs a command on an emulated Linux machine with a software RDMA device, rxe0.

	go run ./internal/tools/vm [flags] -- COMMAND [ARG...]

COMMAND runs in the folder -share, which the machine has under the same path,
and this program ends with its exit code (124: too slow, 125: no machine).
The first run installs packages and fetches a kernel, which takes a minute; -prepare
does that alone.

	go run ./internal/tools/vm -- rdma link show
	go run ./internal/tools/vm -env GOPGAS_IBV_REQUIRED=1 -- ./ibv.test -test.v

`

// parse reads the command line. Help and complaints go to out.
func parse(args []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("vm", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.share, "share", ".", "the `folder` that the machine shares with this one; COMMAND runs there")
	flags.StringVar(&o.cache, "cache", ".cache/vm", "the `folder` that keeps the kernel for the next run")
	name := flags.String("arch", "amd64", "the machine's `architecture`: amd64, or arm64 without RDMA device and programs but busybox's")
	flags.IntVar(&o.memory, "memory", 1024, "the machine's memory in `MiB`")
	flags.IntVar(&o.cpus, "cpus", 2, "the machine's `processors`")
	flags.IntVar(&o.machines, "machines", 1, "the `number` of machines; two are on a network, and reach each other by ssh as vm1 and vm2. COMMAND runs on vm1")
	flags.IntVar(&o.dax, "dax", 0, "`MiB` of memory of a persistent-memory device, which COMMAND finds as /dev/dax0.0")
	flags.IntVar(&o.bar, "bar", 0, "`MiB` of memory of a PCI device, resource2 of 0000:00:10.0 below /sys/bus/pci/devices; a power of two")
	flags.IntVar(&o.nvme, "nvme", 0, "`MiB` of memory of an NVMe controller, a power of two; two more controllers stand beside it below its switch and below another root port. Needs -packages")
	flags.StringVar(&o.given, "packages", "", "a `folder` with the packages (.deb) of a kernel to boot instead of the distribution's")
	flags.StringVar(&o.cpu, "cpu", "", "QEMU's `processor`, if not the usual one")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "end the machine when it prints nothing for this `time`")
	flags.BoolVar(&o.verbose, "v", false, "show the kernel's messages while it boots, and QEMU's command line")
	flags.BoolVar(&o.prepare, "prepare", false, "only install and fetch missing packages; takes no COMMAND")
	flags.Func("env", "`NAME=VALUE` in COMMAND's environment; may be repeated", func(s string) error {
		if name, _, ok := strings.Cut(s, "="); !ok || !isName(name) {
			return errors.New("want NAME=VALUE")
		}
		o.env = append(o.env, s)
		return nil
	})
	flags.Func("bin", "a program's `file`, which the machine gets in /bin with the libraries it needs; may be repeated", func(s string) error {
		o.programs = append(o.programs, s)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.command = flags.Args(); len(o.command) == 0 && !o.prepare {
		return o, errors.New("no COMMAND: name a program to run, as in vm -- rdma link show (see -h)")
	}
	for _, folder := range []*string{&o.share, &o.cache} {
		if *folder, err = filepath.Abs(*folder); err != nil {
			return o, err
		}
	}
	if o.arch, err = archOf(*name); err != nil {
		return o, err
	}
	if !o.arch.rdma && (o.machines > 1 || o.dax > 0 || o.bar > 0) {
		return o, fmt.Errorf("-arch %s: -machines, -dax and -bar need an architecture with an RDMA device, such as amd64", o.arch.name)
	}
	if o.dax < 0 || o.bar < 0 || o.bar&(o.bar-1) != 0 {
		return o, fmt.Errorf("-dax %d -bar %d: not less than 0, and a power of two for -bar", o.dax, o.bar)
	}
	if o.nvme < 0 || o.nvme&(o.nvme-1) != 0 || o.nvme > 0 && o.given == "" {
		return o, fmt.Errorf("-nvme %d: a power of two, with -packages: the distribution's kernel may have no peer DMA", o.nvme)
	}
	if o.machines < 1 || o.machines > maxMachines {
		return o, fmt.Errorf("-machines %d: 1 to %d are possible", o.machines, maxMachines)
	}
	if o.share == "/" {
		return o, errors.New("-share / would hide the machine's own files: share a folder below")
	}
	return o, nil
}

// isName reports whether a shell variable can have this name.
func isName(s string) bool {
	for i, r := range s {
		ascii := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !ascii && (i == 0 || r < '0' || '9' < r) {
			return false
		}
	}
	return s != ""
}
