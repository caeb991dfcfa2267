//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// entry is a file of an archive.
type entry struct {
	name, content string
	mode          int
}

// entries reads an archive back, until its trailer.
func entries(t *testing.T, archive []byte) (out []entry) {
	t.Helper()
	at := 0
	take := func(n int) string { // and the padding behind
		t.Helper()
		require.LessOrEqual(t, at+n, len(archive))
		s := string(archive[at : at+n])
		at = (at + n + 3) / 4 * 4
		return s
	}
	for {
		header := string(archive[at : at+110])
		require.Equal(t, "070701", header[:6])
		field := func(i int) int {
			n, err := strconv.ParseInt(header[6+8*i:][:8], 16, 64)
			require.NoError(t, err)
			return int(n)
		}
		name, ok := strings.CutSuffix(take(110 + field(11))[110:], "\x00")
		require.True(t, ok)
		if name == "TRAILER!!!" {
			require.Len(t, archive, at)
			return out
		}
		out = append(out, entry{name, take(field(6)), field(1)})
	}
}

func sample(t *testing.T) (*bytes.Buffer, []entry) {
	t.Helper()
	var b bytes.Buffer
	a := newArchive(&b)
	a.folder("bin")
	a.link("sbin", "bin")
	want := []entry{{"bin", "", 0o040755}, {"sbin", "bin", 0o120777}}
	for length := range 6 { // every padding
		name, content := "bin/"+strings.Repeat("n", length+1), strings.Repeat("c", length)
		a.file(name, 0o640, []byte(content))
		want = append(want, entry{name, content, 0o100640})
	}
	require.NoError(t, a.close())
	return &b, want
}

func TestArchiveReadsBackUnchanged(t *testing.T) {
	b, want := sample(t)
	require.Equal(t, want, entries(t, b.Bytes()))
}

func TestFoldersPrecedeTheirFilesAndAppearOnce(t *testing.T) {
	var b bytes.Buffer
	a := newArchive(&b)
	a.link("lib", "usr/lib")
	for _, name := range []string{"usr/lib/a", "usr/bin/b", "usr/lib/c", "lib/d", "init"} {
		a.file(name, 0o755, nil)
	}
	a.folder("usr/bin")
	require.NoError(t, a.close())
	var names []string
	for _, e := range entries(t, b.Bytes()) {
		names = append(names, e.name)
	}
	require.Equal(t, []string{"lib", "usr", "usr/lib", "usr/lib/a", "usr/bin", "usr/bin/b", "usr/lib/c", "lib/d", "init"}, names)
}

func TestCpioReadsTheArchive(t *testing.T) {
	cpio := []string{"cpio", "-it"}
	if _, err := exec.LookPath("cpio"); err != nil {
		cpio = []string{"busybox", "cpio", "-it"}
		if _, err := exec.LookPath("busybox"); err != nil {
			t.Skip("no cpio here")
		}
	}
	b, want := sample(t)
	cmd := exec.Command(cpio[0], cpio[1:]...)
	cmd.Stdin = b
	out, err := cmd.Output()
	require.NoError(t, err)
	var names []string
	for _, e := range want {
		names = append(names, e.name)
	}
	require.Equal(t, names, strings.Fields(string(out)))
}

func TestCloseReturnsTheFirstErrorOfAnArchive(t *testing.T) {
	full := errors.New("the disk is full")
	r, w := io.Pipe()
	require.NoError(t, r.CloseWithError(full))
	a := newArchive(w)
	a.folder("bin")
	a.file("bin/sh", 0o755, []byte("text"))
	require.ErrorIs(t, a.close(), full)
}
