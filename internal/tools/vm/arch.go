//go:build linux

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An arch is the processor architecture of a machine. An architecture with an RDMA device
// is this host's own: such a machine has programs and libraries of this system.
type arch struct {
	name     string   // Debian's and Go's
	packages []string // Debian's, for the machine and for building programs for it
	kernels  []string // packages that depend on the distribution's kernel: Debian's, and Ubuntu's
	guest    []string // packages with programs of the machine; none: it has those of this system
	programs []string // of this system, which the machine has
	modules  []string // that the machine loads, with all that they need; see takeModules
	rdma     bool     // the machine has rxe0
	qemu     []string // QEMU's program and the machine's hardware, without the parts of options
	kernel   string   // arguments of the kernel
}

// common are the modules of the shared folder.
var common = []string{"virtio_pci", "9pnet_virtio", "9p"}

// archs are the architectures by name.
var archs = map[string]*arch{
	"amd64": {
		name: "amd64",
		packages: []string{
			"qemu-system-x86", "busybox-static", "xz-utils", "zstd", // the machine, and unpackers of kernels
			"libibverbs1", "ibverbs-providers", "iproute2", // verbs, the driver of rxe, rdma(8)
			"ibverbs-utils", "perftest", "strace", // tools that examine devices
			"openssh-client", "openssh-server", // the way from one machine to another
			"libibverbs-dev", "gcc", "libc6-dev", // compiler and headers
		},
		kernels:  []string{"linux-image-amd64", "linux-image-generic"},
		modules:  append(slices.Clone(common), rdmaModules...),
		programs: standard,
		rdma:     true,
		// The processor has all features of QEMU except fast copies of strings. With these
		// the kernel would copy with "rep movsb", which QEMU does byte by byte. Readers
		// would then see rxe's writes of aligned words torn, as real devices' never are.
		qemu:   []string{"qemu-system-x86_64", "-M", "q35", "-cpu", "max,-erms,-fsrm"},
		kernel: "console=ttyS0 tsc=reliable no_timer_check",
	},
	// The processor has instructions for atomics (LSE), as all servers' have; Go uses them.
	"arm64": {
		name:     "arm64",
		packages: []string{"qemu-system-arm", "xz-utils", "zstd"},
		kernels:  []string{"linux-image-arm64"},
		guest:    []string{"busybox-static"},
		modules:  common,
		qemu:     []string{"qemu-system-aarch64", "-M", "virt", "-cpu", "neoverse-n1"},
		kernel:   "console=ttyAMA0",
	},
}

// archOf returns the architecture of a name.
func archOf(name string) (*arch, error) {
	if a := archs[name]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("-arch %s: choose one of %s", name, strings.Join(slices.Sorted(maps.Keys(archs)), ", "))
}

// An aptSource is where packages of an architecture come from. For a machine with programs
// of its own it keeps the lists of packages in the cache: this system need not know the
// architecture, and nothing is installed.
type aptSource struct {
	arch    *arch
	folder  string   // with the lists; "": the system's
	options []string // of apt-get and apt-cache
}

// source returns how apt gets packages of this architecture: for another one, from lists and a
// cache of their own.
func (a *arch) source(cache string) aptSource {
	if a.guest == nil {
		return aptSource{arch: a}
	}
	folder := filepath.Join(cache, "apt-"+a.name)
	return aptSource{a, folder, []string{
		"-o", "APT::Architecture=" + a.name, "-o", "APT::Architectures=" + a.name,
		"-o", "Dir::State::lists=" + filepath.Join(folder, "lists"), "-o", "Dir::Cache=" + filepath.Join(folder, "cache"),
	}}
}

// update fetches the lists of packages.
func (s aptSource) update(ctx context.Context) error {
	if s.folder == "" {
		return again(ctx, func() error { return apt(ctx, "update") })
	}
	for _, folder := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(s.folder, folder), 0o755); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "vm: fetching the lists of packages for", s.arch.name)
	return again(ctx, func() error {
		_, err := output(ctx, "apt-get", append([]string{"-q", "update"}, s.options...)...)
		return err
	})
}

// show describes a package.
func (s aptSource) show(ctx context.Context, name string) (string, error) {
	return output(ctx, "apt-cache", append([]string{"show", "--no-all-versions", name}, s.options...)...)
}

// download puts a package's file into a folder: apt-get downloads to its working directory.
func (s aptSource) download(ctx context.Context, name, folder string) error {
	fmt.Fprintln(os.Stderr, "vm: downloading", name)
	return again(ctx, func() error {
		_, err := output(ctx, "env", append([]string{"-C", folder, "apt-get", "-q", "download", name}, s.options...)...)
		return err
	})
}
