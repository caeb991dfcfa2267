//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Offsets of a bzImage's header (Documentation/arch/x86/boot.rst of the kernel).
// Numbers are little-endian.
const (
	setupSectors  = 0x1f1 // 1 byte: sectors of 512 bytes before the protected-mode code, less the first
	bootMagic     = 0x202 // "HdrS"
	bootVersion   = 0x206 // 2 bytes: from 2.08 on the header has the next two
	payloadOffset = 0x248 // 4 bytes, from the protected-mode code
	payloadLength = 0x24c // 4 bytes
	headerEnd     = 0x250
)

var errNoImage = errors.New("neither a compressed x86 kernel nor one of arm64")

// payload returns the compressed kernel within a bzImage.
func payload(image []byte) ([]byte, error) {
	if len(image) < headerEnd || string(image[bootMagic:bootMagic+4]) != "HdrS" ||
		binary.LittleEndian.Uint16(image[bootVersion:]) < 0x208 {
		return nil, errNoImage
	}
	code := (int64(image[setupSectors]) + 1) * 512
	from := code + int64(binary.LittleEndian.Uint32(image[payloadOffset:]))
	to := from + int64(binary.LittleEndian.Uint32(image[payloadLength:]))
	if to > int64(len(image)) {
		return nil, fmt.Errorf("%w: it ends at byte %d, of %d", errNoImage, len(image), to)
	}
	return image[from:to], nil
}

// An arm64 kernel begins with a header, too, whose magic number lies here
// (Documentation/arch/arm64/booting.rst). QEMU boots the file as it is.
const (
	armMagicAt = 0x38
	armMagic   = "ARM\x64"
)

// extractVmlinux writes the kernel of a vmlinuz to vmlinux.
func extractVmlinux(vmlinuz, vmlinux string) error {
	image, err := os.ReadFile(vmlinuz)
	if err != nil {
		return err
	}
	if len(image) >= armMagicAt+len(armMagic) && string(image[armMagicAt:armMagicAt+len(armMagic)]) == armMagic {
		return os.WriteFile(vmlinux, image, 0o644)
	}
	packed, err := payload(image)
	if err != nil {
		return fmt.Errorf("%s: %w", vmlinuz, err)
	}
	if !bytes.HasPrefix(packed, []byte(gzipMagic)) {
		packed = packed[:max(0, len(packed)-4)] // the length, which gzip has itself
	}
	kernel, err := unpack(packed)
	if err != nil {
		return fmt.Errorf("%s: %w", vmlinuz, err)
	}
	if !bytes.HasPrefix(kernel, []byte("\x7fELF")) {
		return fmt.Errorf("%s: %w: its content is no ELF file", vmlinuz, errNoImage)
	}
	return os.WriteFile(vmlinux, kernel, 0o644)
}

const gzipMagic = "\x1f\x8b"

// unpackers lists the programs that undo a compression, by its first bytes.
var unpackers = []struct {
	magic   string
	command []string
}{
	{"\xfd7zXZ\x00", []string{"xz", "-dc"}},
	{"\x28\xb5\x2f\xfd", []string{"zstd", "-dcq"}},
	{gzipMagic, []string{"gzip", "-dc"}},
}

// unpack undoes the compression of b, or returns b if it knows none.
func unpack(b []byte) ([]byte, error) {
	for _, u := range unpackers {
		if !bytes.HasPrefix(b, []byte(u.magic)) {
			continue
		}
		cmd := exec.Command(u.command[0], u.command[1:]...)
		cmd.Stdin = bytes.NewReader(b)
		return outputOf(cmd)
	}
	return b, nil
}
