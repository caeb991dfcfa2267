//go:build linux

package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandGetsItsWordsAndEnvironmentUnchanged(t *testing.T) {
	words := []string{"printf", `[%s]\n`, "", "two words", "don't", `"$HOME"`, `\`, "a\nb", "*"}
	o := options{command: words, share: "/it's here", env: []string{"A=$HOME 'x'", "B="}}
	script := write(t, commandScript(o), t.TempDir(), "command.sh")

	out, err := exec.Command("sh", "-c", `. "$1"; echo "$share"; command`, "sh", script).Output()
	require.NoError(t, err)
	require.Equal(t, "/it's here\n["+strings.Join(words[2:], "]\n[")+"]\n", string(out))

	o.command = []string{"env"}
	script = write(t, commandScript(o), t.TempDir(), "command.sh")
	out, err = exec.Command("sh", "-c", `. "$1"; command`, "sh", script).Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "A=$HOME 'x'\n")
	require.Contains(t, string(out), "B=\n")
}

func TestLibrariesAndLoaderAreWhereTheGuestLooks(t *testing.T) {
	system := t.TempDir()
	object{}.write(t, system, "liba.so")
	loader := object{}.write(t, system, "ld.so")
	program := object{interpreter: loader, needed: []string{"liba.so"}}.write(t, t.TempDir(), "program")

	var b bytes.Buffer
	i := image{archive: newArchive(&b), libraries: newLibraries([]string{system})}
	require.NoError(t, i.withLibraries("usr/bin/program", program))
	require.NoError(t, i.copyLibraries())
	require.NoError(t, i.close())
	content := string(object{}.bytes(t))
	all := entries(t, b.Bytes())
	require.Contains(t, all, entry{libFolder + "/liba.so", content, 0o100755})
	require.Contains(t, all, entry{strings.TrimPrefix(loader, "/"), content, 0o100755})
	require.Contains(t, all, entry{"usr/bin/program", string(object{interpreter: loader, needed: []string{"liba.so"}}.bytes(t)), 0o100755})
}

func TestFirstProcessIsAShellScript(t *testing.T) {
	require.True(t, bytes.HasPrefix(initScript, []byte("#!/bin/busybox sh\n")))
	require.NoError(t, exec.Command("sh", "-n", write(t, initScript, t.TempDir(), "init")).Run())
}

func TestErrorNamesAMissingProgram(t *testing.T) {
	_, err := find("no-such-program")
	require.ErrorContains(t, err, "no-such-program")
	err = (&image{archive: newArchive(&bytes.Buffer{})}).copy("bin/x", filepath.Join(t.TempDir(), "gone"))
	require.ErrorContains(t, err, "gone")
}
