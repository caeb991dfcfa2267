//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
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
	if err := o.setArch("amd64"); err != nil {
		return o, err
	}
	flags := o.flags(out)
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
	return o, o.check()
}

// flags returns the flag set whose flags set o. Help and complaints go to out.
func (o *options) flags(out io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("vm", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.share, "share", ".", "the `folder` that the machine shares with this one; COMMAND runs there")
	flags.StringVar(&o.cache, "cache", ".cache/vm", "the `folder` that keeps the kernel for the next run")
	flags.Func("arch", "the machine's `architecture`: amd64, the default, or arm64 without RDMA device and programs but busybox's", o.setArch)
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
	flags.Func("env", "`NAME=VALUE` in COMMAND's environment; may be repeated", o.addVariable)
	flags.Func("bin", "a program's `file`, which the machine gets in /bin with the libraries it needs; may be repeated", o.addProgram)
	return flags
}

// setArch chooses the architecture.
func (o *options) setArch(name string) (err error) {
	o.arch, err = archOf(name)
	return err
}

// addVariable adds a variable of COMMAND's environment.
func (o *options) addVariable(s string) error {
	if name, _, ok := strings.Cut(s, "="); !ok || !isName(name) {
		return errors.New("want NAME=VALUE")
	}
	o.env = append(o.env, s)
	return nil
}

// addProgram adds a file to the machine's /bin.
func (o *options) addProgram(file string) error {
	o.programs = append(o.programs, file)
	return nil
}

// check returns an error if the flags contradict each other, or ask for a machine that cannot be made.
func (o *options) check() error {
	if !o.arch.rdma && (o.machines > 1 || o.dax > 0 || o.bar > 0) {
		return fmt.Errorf("-arch %s: -machines, -dax and -bar need an architecture with an RDMA device, such as amd64", o.arch.name)
	}
	if o.dax < 0 || o.bar < 0 || o.bar&(o.bar-1) != 0 {
		return fmt.Errorf("-dax %d -bar %d: not less than 0, and a power of two for -bar", o.dax, o.bar)
	}
	if o.nvme < 0 || o.nvme&(o.nvme-1) != 0 || o.nvme > 0 && o.given == "" {
		return fmt.Errorf("-nvme %d: a power of two, with -packages: the distribution's kernel may have no peer DMA", o.nvme)
	}
	if o.machines < 1 || o.machines > maxMachines {
		return fmt.Errorf("-machines %d: 1 to %d are possible", o.machines, maxMachines)
	}
	if o.share == "/" {
		return errors.New("-share / would hide the machine's own files: share a folder below")
	}
	return nil
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
