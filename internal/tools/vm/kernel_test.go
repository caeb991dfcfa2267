//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// distribution puts stand-ins for apt and dpkg first in PATH. They know one
// kernel, whose files are in the folder root. It returns the file to which
// apt-get writes its arguments.
func distribution(t *testing.T, root string) (calls string) {
	t.Helper()
	bin := t.TempDir()
	calls = filepath.Join(bin, "calls")
	for name, script := range map[string]string{
		"apt-cache": `case $3 in
			linux-image-arm64) echo 'Depends: linux-image-6.1.0-9-arm64 (= 6.1.9-2)' ;;
			linux-image-6.1.0-9-arm64) echo 'Version: 6.1.9-2' ;;
			linux-image-amd64) echo 'Depends: linux-image-6.1.0-9-amd64 (= 6.1.9-2)' ;;
			linux-image-6.1.0-9-amd64) echo 'Version: 6.1.9-2'; echo 'Depends: kmod, linux-base (>= 4.3~)' ;;
			*) exit 100 ;;
			esac`,
		"apt-get": `echo "$@" >>'` + calls + `'; case "$*" in *download*) touch kernel.deb ;; esac`,
		"sudo":    `shift; exec "$@"`,
		"dpkg":    `cp -r '` + root + `/.' "$3"`,
	} {
		write(t, []byte("#!/bin/sh\n"+script+"\n"), bin, name)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return calls
}

// kernelFiles makes the files of a kernel's package.
func kernelFiles(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, bzImage(gzipped(t, []byte("\x7fELF kernel"))), root, "boot", "vmlinuz-6.1.0-9-amd64")
	folder := filepath.Join(root, "lib", "modules", "6.1.0-9-amd64")
	for _, name := range archs["amd64"].modules {
		depends := ""
		if name == "rdma_rxe" {
			depends = "ib_core"
		}
		object{modinfo: "depends=" + depends + "\x00"}.write(t, folder, name+".ko")
	}
	object{modinfo: "depends=\x00"}.write(t, folder, "ib_core.ko")
	write(t, nil, folder, "modules.builtin")
	return root
}

func TestPrepareFetchesTheKernelOnce(t *testing.T) {
	calls := distribution(t, kernelFiles(t))
	cache := filepath.Join(t.TempDir(), "cache")
	var first kernel
	for range 2 {
		k, err := prepareKernel(t.Context(), cache, archs["amd64"].source(cache))
		require.NoError(t, err)
		if first.vmlinux == "" {
			first = k
		}
		require.Equal(t, first, k)
	}
	text, err := os.ReadFile(calls)
	require.NoError(t, err)
	require.Equal(t, "-q download linux-image-6.1.0-9-amd64=6.1.9-2\n", string(text))

	require.Contains(t, first.vmlinux, "linux-image-6.1.0-9-amd64_6.1.9-2")
	content, err := os.ReadFile(first.vmlinux)
	require.NoError(t, err)
	require.Equal(t, "\x7fELF kernel", string(content))
	require.Len(t, first.modules, len(archs["amd64"].modules)+1)
	all := strings.Join(first.modules, " ")
	require.Less(t, strings.Index(all, "ib_core.ko"), strings.Index(all, "rdma_rxe.ko"))
}

func TestNewKernelReplacesAnOlderOne(t *testing.T) {
	distribution(t, kernelFiles(t))
	cache := t.TempDir()
	write(t, nil, cache, "kernel-linux-image-6.0.0-1-amd64_6.0-1-00000000", "vmlinux")
	const other = "kernel-linux-image-6.0.0-1-arm64_6.0-1-00000000"
	write(t, nil, cache, other, "vmlinux")
	write(t, nil, cache, "new-by-another", "kernel.deb")
	killed := filepath.Dir(write(t, nil, cache, "new-by-one-who-was-killed", "kernel.deb"))
	yesterday := time.Now().Add(-24 * time.Hour)
	require.NoError(t, os.Chtimes(killed, yesterday, yesterday))

	k, err := prepareKernel(t.Context(), cache, archs["amd64"].source(cache))
	require.NoError(t, err)
	var left []string
	found, err := os.ReadDir(cache)
	require.NoError(t, err)
	for _, entry := range found {
		left = append(left, entry.Name())
	}
	require.ElementsMatch(t, []string{filepath.Base(filepath.Dir(k.vmlinux)), "new-by-another", other}, left)
}

func TestKernelThatLacksAModuleLeavesTheCacheUnchanged(t *testing.T) {
	root := kernelFiles(t)
	require.NoError(t, os.Remove(filepath.Join(root, "lib/modules/6.1.0-9-amd64/rdma_rxe.ko")))
	distribution(t, root)
	cache := t.TempDir()
	const old = "kernel-linux-image-6.0.0-1-amd64_6.0-1-00000000"
	write(t, nil, cache, old, "vmlinux")
	_, err := prepareKernel(t.Context(), cache, archs["amd64"].source(cache))
	require.ErrorContains(t, err, "no module rdma_rxe")
	found, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, old, found[0].Name())
}

func TestListsOfPackagesAreFetchedWhenTheyKnowNoKernel(t *testing.T) {
	calls := distribution(t, kernelFiles(t))
	cache := filepath.Join(filepath.Dir(calls), "apt-cache")
	known, err := os.ReadFile(cache)
	require.NoError(t, err)
	write(t, []byte("#!/bin/sh\ngrep -q update '"+calls+"' || exit 100\n"+string(known)), cache)

	_, err = prepareKernel(t.Context(), t.TempDir(), archs["amd64"].source(""))
	require.NoError(t, err)
	text, err := os.ReadFile(calls)
	require.NoError(t, err)
	require.Regexp(t, "(?s)update\n.*download", string(text))
}

func TestOptionalModulesMayBeMissing(t *testing.T) {
	root := kernelFiles(t)
	for _, name := range optional {
		require.NoError(t, os.Remove(filepath.Join(root, "lib/modules/6.1.0-9-amd64", name+".ko")))
	}
	distribution(t, root)
	k, err := prepareKernel(t.Context(), t.TempDir(), archs["amd64"].source(""))
	require.NoError(t, err)
	require.Len(t, k.modules, len(archs["amd64"].modules)+1-len(optional))
}

// TestMachineOfAnotherArchitectureHasProgramsOfItsPackages checks that nothing is installed, and
// that the lists of packages are apart from the system's.
func TestMachineOfAnotherArchitectureHasProgramsOfItsPackages(t *testing.T) {
	root := kernelFiles(t)
	image := append(make([]byte, armMagicAt), armMagic+"kernel"...)
	write(t, image, root, "boot", "vmlinuz-6.1.0-9-amd64")
	write(t, []byte("arm64's"), root, "bin", "busybox")
	calls := distribution(t, root)
	cache := t.TempDir()
	s := archs["arm64"].source(cache)
	k, err := prepareKernel(t.Context(), cache, s)
	require.NoError(t, err)
	require.Len(t, k.modules, len(common))
	for file, want := range map[string]string{k.vmlinux: string(image), k.busybox: "arm64's"} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, want, string(content))
	}
	require.NoError(t, s.update(t.Context()))
	text, err := os.ReadFile(calls)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 3)
	for i, begin := range []string{"-q download linux-image-6.1.0-9-arm64=6.1.9-2 ", "-q download busybox-static ", "-q update "} {
		require.True(t, strings.HasPrefix(lines[i], begin), lines[i])
		require.Contains(t, lines[i], "-o APT::Architecture=arm64 ")
		require.Contains(t, lines[i], "Dir::State::lists="+cache)
	}
}

func TestGivenPackagesAreUnpackedOnceForEachListOfModules(t *testing.T) {
	root := kernelFiles(t)
	calls := distribution(t, root)
	vmlinuz := filepath.Join(root, "lib/modules/6.1.0-9-amd64/vmlinuz") // newer packages have it there
	require.NoError(t, os.Rename(filepath.Join(root, "boot/vmlinuz-6.1.0-9-amd64"), vmlinuz))
	require.NoError(t, os.Rename(filepath.Join(root, "lib"), filepath.Join(root, "usr")))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "usr/lib"), 0o755))
	require.NoError(t, os.Rename(filepath.Join(root, "usr/modules"), filepath.Join(root, "usr/lib/modules")))
	cache, packages := t.TempDir(), t.TempDir()
	from, wanted := archs["amd64"].source(cache), archs["amd64"].modules
	_, err := from.givenKernel(t.Context(), cache, packages)
	require.ErrorContains(t, err, "no package")
	write(t, nil, packages, "kernel.deb")
	for range 2 {
		k, err := from.givenKernel(t.Context(), cache, packages)
		require.NoError(t, err)
		require.Len(t, k.modules, len(wanted)+1)
	}
	_, err = (&options{cache: cache, arch: archs["amd64"], given: packages}).kernel(t.Context()) // with the module nvme
	require.ErrorContains(t, err, "no module nvme")
	require.NoFileExists(t, calls, "apt fetches nothing")
}
