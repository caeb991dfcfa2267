//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// bzImage wraps a compressed kernel as the kernel's build does, between code.
func bzImage(packed []byte) []byte {
	const setup, before = 3, 1000 // sectors, bytes
	image := bytes.Repeat([]byte{0x90}, (setup+1)*512+before)
	image[setupSectors] = setup
	copy(image[bootMagic:], "HdrS")
	binary.LittleEndian.PutUint16(image[bootVersion:], 0x20f)
	binary.LittleEndian.PutUint32(image[payloadOffset:], before)
	binary.LittleEndian.PutUint32(image[payloadLength:], uint32(len(packed)))
	return append(append(image, packed...), "code"...)
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// packedBy compresses with a program, and adds the length as the kernel's build
// does.
func packedBy(t *testing.T, content []byte, program ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(program[0]); err != nil {
		t.Skipf("no %s here", program[0])
	}
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdin = bytes.NewReader(content)
	out, err := cmd.Output()
	require.NoError(t, err)
	return binary.LittleEndian.AppendUint32(out, uint32(len(content)))
}

func TestExtractVmlinuxUnpacksTheKernel(t *testing.T) {
	kernel := append([]byte("\x7fELF"), bytes.Repeat([]byte("kernel"), 10000)...)
	for name, pack := range map[string]func(t *testing.T) []byte{
		"gzip": func(t *testing.T) []byte { return gzipped(t, kernel) },
		"xz":   func(t *testing.T) []byte { return packedBy(t, kernel, "xz", "-zc", "--check=crc32") },
		"zstd": func(t *testing.T) []byte { return packedBy(t, kernel, "zstd", "-cq") },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			vmlinux := filepath.Join(folder, "vmlinux")
			require.NoError(t, extractVmlinux(write(t, bzImage(pack(t)), folder, "vmlinuz"), vmlinux))
			got, err := os.ReadFile(vmlinux)
			require.NoError(t, err)
			require.True(t, bytes.Equal(kernel, got))
		})
	}
}

func TestExtractVmlinuxRefusesOtherFiles(t *testing.T) {
	whole := bzImage(gzipped(t, []byte("\x7fELF")))
	old := bytes.Clone(whole)
	binary.LittleEndian.PutUint16(old[bootVersion:], 0x207)
	for name, image := range map[string][]byte{
		"empty":          {},
		"text":           bytes.Repeat([]byte("text"), 1000),
		"cut off":        whole[:len(whole)-10],
		"too old":        old,
		"holds no ELF":   bzImage(gzipped(t, []byte("text"))),
		"holds nothing":  bzImage(nil),
		"without a body": whole[:headerEnd],
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			vmlinux := filepath.Join(folder, "vmlinux")
			require.ErrorIs(t, extractVmlinux(write(t, image, folder, "vmlinuz"), vmlinux), errNoImage)
			require.NoFileExists(t, vmlinux)
		})
	}
}

func TestDamagedKernelReturnsAnError(t *testing.T) {
	packed := gzipped(t, bytes.Repeat([]byte("\x7fELF"), 1000))
	packed[len(packed)-8] ^= 1 // the checksum
	folder := t.TempDir()
	err := extractVmlinux(write(t, bzImage(packed), folder, "vmlinuz"), filepath.Join(folder, "vmlinux"))
	require.ErrorContains(t, err, "crc")
}
