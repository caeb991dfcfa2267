//go:build linux

package main

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLibrariesComeWithTheLibrariesThatTheyNeed(t *testing.T) {
	system := t.TempDir()
	verbs := object{needed: []string{"libnl.so", "libc.so"}}.write(t, system, "libibverbs.so")
	nl := object{needed: []string{"libc.so"}}.write(t, system, "libnl.so")
	c := object{needed: []string{"libnl.so"}}.write(t, system, "libc.so") // a circle ends
	object{}.write(t, system, "libunasked.so")
	program := object{interpreter: "/lib64/ld.so", needed: []string{"libibverbs.so"}}.write(t, t.TempDir(), "program")

	l := newLibraries([]string{t.TempDir(), system})
	require.NoError(t, l.addFor(program))
	require.Equal(t, map[string]string{"libibverbs.so": verbs, "libnl.so": nl, "libc.so": c}, l.files)
	require.Equal(t, map[string]bool{"/lib64/ld.so": true}, l.interpreters)
}

func TestRunPathOfAProgramComesFirst(t *testing.T) {
	system, own := t.TempDir(), t.TempDir()
	object{}.write(t, system, "liba.so")
	want := object{}.write(t, own, "lib", "liba.so")
	program := object{needed: []string{"liba.so"}, runPath: "/nowhere:$ORIGIN/../lib"}.write(t, own, "bin", "program")

	l := newLibraries([]string{system})
	require.NoError(t, l.addFor(program))
	require.Equal(t, want, l.files["liba.so"])
}

func TestErrorNamesAMissingLibraryAndTheFileThatNeedsIt(t *testing.T) {
	program := object{needed: []string{"libgone.so"}}.write(t, t.TempDir(), "program")
	err := newLibraries([]string{"/nowhere"}).addFor(program)
	require.ErrorContains(t, err, "no library libgone.so in /nowhere, which "+program+" needs")
}

func TestScriptsAndStaticProgramsNeedNothing(t *testing.T) {
	for _, content := range [][]byte{nil, []byte("#!/bin/sh\n"), object{}.bytes(t)} {
		l := newLibraries(nil)
		require.NoError(t, l.addFor(write(t, content, t.TempDir(), "program")))
		require.Empty(t, l.files)
		require.Empty(t, l.interpreters)
	}
}

// The system's own loader has the last word.
func TestAddForFindsTheLibrariesThatLdSoFinds(t *testing.T) {
	ldd, err := exec.LookPath("ldd")
	if err != nil {
		t.Skip("no ldd here")
	}
	program, err := find("apt-get")
	if err != nil {
		t.Skip("no Debian here")
	}
	out, err := exec.Command(ldd, program).Output()
	require.NoError(t, err)
	want := []string{}
	for _, m := range regexp.MustCompile(`(?m)^\s*(\S+) => /`).FindAllStringSubmatch(string(out), -1) {
		want = append(want, m[1])
	}
	require.Contains(t, want, "libc.so.6")

	l := newLibraries(systemFolders())
	require.NoError(t, l.addFor(program))
	got := slices.DeleteFunc(slices.Collect(maps.Keys(l.files)), func(name string) bool {
		return l.interpreters["/lib64/"+name] // ldd shows the loader by its path
	})
	require.ElementsMatch(t, want, got)
	for name := range l.interpreters {
		require.FileExists(t, filepath.Clean(name))
	}
}
