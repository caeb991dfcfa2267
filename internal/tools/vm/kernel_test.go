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
	for _, name := range wanted {
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
		k, err := prepareKernel(t.Context(), cache)
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
	require.Len(t, first.modules, len(wanted)+1)
	all := strings.Join(first.modules, " ")
	require.Less(t, strings.Index(all, "ib_core.ko"), strings.Index(all, "rdma_rxe.ko"))
}

func TestNewKernelReplacesAnOlderOne(t *testing.T) {
	distribution(t, kernelFiles(t))
	cache := t.TempDir()
	write(t, nil, cache, "kernel-old", "vmlinux")
	write(t, nil, cache, "new-by-another", "kernel.deb")
	killed := filepath.Dir(write(t, nil, cache, "new-by-one-who-was-killed", "kernel.deb"))
	yesterday := time.Now().Add(-24 * time.Hour)
	require.NoError(t, os.Chtimes(killed, yesterday, yesterday))

	k, err := prepareKernel(t.Context(), cache)
	require.NoError(t, err)
	var left []string
	found, err := os.ReadDir(cache)
	require.NoError(t, err)
	for _, entry := range found {
		left = append(left, entry.Name())
	}
	require.ElementsMatch(t, []string{filepath.Base(filepath.Dir(k.vmlinux)), "new-by-another"}, left)
}

func TestKernelThatLacksAModuleLeavesTheCacheUnchanged(t *testing.T) {
	root := kernelFiles(t)
	require.NoError(t, os.Remove(filepath.Join(root, "lib/modules/6.1.0-9-amd64/rdma_rxe.ko")))
	distribution(t, root)
	cache := t.TempDir()
	write(t, nil, cache, "kernel-old", "vmlinux")
	_, err := prepareKernel(t.Context(), cache)
	require.ErrorContains(t, err, "no module rdma_rxe")
	found, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "kernel-old", found[0].Name())
}

func TestListsOfPackagesAreFetchedWhenTheyKnowNoKernel(t *testing.T) {
	calls := distribution(t, kernelFiles(t))
	cache := filepath.Join(filepath.Dir(calls), "apt-cache")
	known, err := os.ReadFile(cache)
	require.NoError(t, err)
	write(t, []byte("#!/bin/sh\ngrep -q update '"+calls+"' || exit 100\n"+string(known)), cache)

	_, err = prepareKernel(t.Context(), t.TempDir())
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
	k, err := prepareKernel(t.Context(), t.TempDir())
	require.NoError(t, err)
	require.Len(t, k.modules, len(wanted)+1-len(optional))
}
