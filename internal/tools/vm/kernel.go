//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// kernel is a kernel in the cache:
//
//	.cache/vm/kernel-NAME_VERSION-WANTED/
//		vmlinux
//		busybox                  of a machine with programs of its own
//		00-crc32_generic.ko
//		01-virtio.ko ...     in order of loading
//
// WANTED is a checksum of the wanted modules' names. The folder appears when it
// is complete.
type kernel struct {
	vmlinux string   // a file
	busybox string   // a file; "": this system's
	modules []string // files, in order of loading
}

// prepareKernel returns the distribution's kernel in the cache. If it is missing,
// prepareKernel fetches it and removes older ones.
func prepareKernel(ctx context.Context, cache string, s aptSource) (kernel, error) {
	k, err := kernelOf(ctx, cache, s)
	if err != nil && ctx.Err() == nil {
		// The lists of packages may be missing, or older than the servers'.
		if err := s.update(ctx); err != nil {
			return k, err
		}
		k, err = kernelOf(ctx, cache, s)
	}
	return k, err
}

// kernelOf does that for the kernel in apt's current lists.
func kernelOf(ctx context.Context, cache string, s aptSource) (k kernel, err error) {
	packages, err := s.kernelPackages(ctx)
	if err != nil {
		return k, err
	}
	folder := filepath.Join(cache, cacheName(packages, s.arch.modules))
	if _, err := os.Stat(folder); err == nil {
		return openKernel(folder)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return k, err
	}
	old, err := outdated(cache, packages[0])
	if err != nil {
		return k, err
	}
	fetch := func(work string) error { return s.fetchKernel(ctx, append(packages, s.arch.guest...), work) }
	if err := makeKernel(cache, folder, fetch); err != nil {
		return k, err
	}
	for _, folder := range old {
		if err := os.RemoveAll(folder); err != nil {
			return k, err
		}
	}
	return openKernel(folder)
}

// makeKernel has fill put a kernel's files into the folder done of a working folder, and moves them to folder.
func makeKernel(cache, folder string, fill func(work string) error) (err error) {
	work, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := fill(work); err != nil {
		return err
	}
	// Another process may have made the same folder first.
	if err := os.Rename(filepath.Join(work, "done"), folder); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}

// givenKernel returns the kernel whose packages lie in a folder. The cache keeps it.
func (s aptSource) givenKernel(ctx context.Context, cache, packages string) (k kernel, err error) {
	debs, err := filepath.Glob(filepath.Join(packages, "*.deb"))
	if err != nil {
		return k, err
	}
	if len(debs) == 0 {
		return k, fmt.Errorf("no package of a kernel (.deb) lies in %s", packages)
	}
	names := strings.Join(slices.Concat(debs, s.arch.modules), " ")
	folder := filepath.Join(cache, fmt.Sprintf("given-%08x", crc32.ChecksumIEEE([]byte(names))))
	if _, err := os.Stat(folder); err == nil {
		return openKernel(folder)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return k, err
	}
	if err := makeKernel(cache, folder, func(work string) error { return s.unpackKernel(ctx, debs, work) }); err != nil {
		return k, err
	}
	return openKernel(folder)
}

// outdated lists the folders that a new kernel replaces. These are older kernels of its
// architecture, which ends the package's name, and folders of runs that were killed while they
// fetched one.
func outdated(cache, replacement string) ([]string, error) {
	name, _, _ := strings.Cut(replacement, "=")
	old, err := filepath.Glob(filepath.Join(cache, "kernel-*"+name[strings.LastIndexByte(name, '-'):]+"_*"))
	if err != nil {
		return nil, err
	}
	unfinished, err := filepath.Glob(filepath.Join(cache, "new-*"))
	for _, folder := range unfinished {
		if info, err := os.Stat(folder); err == nil && time.Since(info.ModTime()) > time.Hour {
			old = append(old, folder)
		}
	}
	return old, err
}

// cacheName returns the folder's name for packages, "NAME=VERSION" each, and the
// wanted modules.
func cacheName(packages, modules []string) string {
	name := strings.ReplaceAll(packages[0], "=", "_")
	return fmt.Sprintf("kernel-%s-%08x", strings.ReplaceAll(name, "/", "_"), crc32.ChecksumIEEE([]byte(strings.Join(modules, " "))))
}

// openKernel lists a folder of the cache.
func openKernel(folder string) (kernel, error) {
	found, err := filepath.Glob(filepath.Join(folder, "*.ko"))
	slices.Sort(found)
	k := kernel{vmlinux: filepath.Join(folder, "vmlinux"), modules: found}
	if own := filepath.Join(folder, "busybox"); isFile(own) {
		k.busybox = own
	}
	return k, err
}

// fetchKernel downloads packages to the folder work, and unpacks them there.
func (s aptSource) fetchKernel(ctx context.Context, packages []string, work string) error {
	for _, p := range packages {
		if err := s.download(ctx, p, work); err != nil {
			return err
		}
	}
	debs, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil {
		return err
	}
	return s.unpackKernel(ctx, debs, work)
}

// unpackKernel moves the files of packages that the machine needs to work/done.
func (s aptSource) unpackKernel(ctx context.Context, debs []string, work string) error {
	root, done := filepath.Join(work, "root"), filepath.Join(work, "done")
	for _, folder := range []string{root, done} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
	}
	for _, deb := range debs {
		if _, err := output(ctx, "dpkg", "-x", deb, root); err != nil {
			return err
		}
	}
	vmlinuz, err := only(root, "boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz")
	if err != nil {
		return err
	}
	if err := extractVmlinux(vmlinuz, filepath.Join(done, "vmlinux")); err != nil {
		return err
	}
	if s.arch.guest != nil {
		busybox, err := only(root, "bin/busybox", "usr/bin/busybox")
		if err == nil {
			err = os.Rename(busybox, filepath.Join(done, "busybox"))
		}
		if err != nil {
			return err
		}
	}
	return takeModules(root, done, s.arch.modules)
}

// takeModules copies the wanted modules of the kernel in root to done, named by
// their order.
func takeModules(root, done string, wanted []string) error {
	folder, err := only(root, "lib/modules/*", "usr/lib/modules/*")
	if err != nil {
		return err
	}
	all, err := scanModules(folder)
	if err != nil {
		return err
	}
	order, err := all.closure(slices.DeleteFunc(slices.Clone(wanted), func(name string) bool {
		return all.files[name] == "" && slices.Contains(optional, name)
	}))
	if err != nil {
		return err
	}
	for i, m := range order {
		file := filepath.Join(done, fmt.Sprintf("%02d-%s.ko", i, m.name))
		if err := os.WriteFile(file, m.content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// only returns the one file in root that matches one of the patterns.
func only(root string, patterns ...string) (string, error) {
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return "", err
		}
		all = append(all, found...)
	}
	if len(all) != 1 {
		return "", fmt.Errorf("the kernel's packages have %d files %s, not one", len(all), strings.Join(patterns, " or "))
	}
	return all[0], nil
}
