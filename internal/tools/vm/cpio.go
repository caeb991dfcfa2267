//go:build linux

package main

import (
	"fmt"
	"io"
	"io/fs"
	"path"
)

// archive writes a cpio archive of the format "newc", which the kernel unpacks
// as its first file system:
//
//	header 110 bytes: "070701" and 13 numbers of 8 hexadecimal digits
//	name, NUL, zeros up to a multiple of 4
//	content, zeros up to a multiple of 4
//
// and so on until the entry TRAILER!!!. The first error remains; close returns
// it.
type archive struct {
	w       io.Writer
	folders map[string]bool // in the archive already
	written int64
	inode   int
	err     error
}

func newArchive(w io.Writer) archive {
	return archive{w: w, folders: map[string]bool{".": true}}
}

// Types of an entry, above its permissions (cpio(5)).
const (
	typeFolder = 0o040000
	typeFile   = 0o100000
	typeLink   = 0o120000
)

// folder adds a folder and those above it, unless the archive has them.
func (a *archive) folder(name string) {
	if a.folders[name] {
		return
	}
	a.folder(path.Dir(name))
	a.folders[name] = true
	a.entry(name, typeFolder|0o755, nil)
}

// file adds a file and the folders above it.
func (a *archive) file(name string, perm fs.FileMode, content []byte) {
	a.folder(path.Dir(name))
	a.entry(name, typeFile|int(perm.Perm()), content)
}

// link adds a symbolic link to a folder.
func (a *archive) link(name, target string) {
	a.folder(path.Dir(name))
	a.folders[name] = true
	a.entry(name, typeLink|0o777, []byte(target))
}

// close ends the archive; the writer stays open.
func (a *archive) close() error {
	a.entry("TRAILER!!!", 0, nil)
	return a.err
}

// entry writes one file in the format newc, which the kernel reads.
func (a *archive) entry(name string, mode int, content []byte) {
	a.inode++
	const owner, group, links, modified, device = 0, 0, 1, 0, 0
	header := "070701"
	for _, number := range []int{a.inode, mode, owner, group, links, modified, len(content),
		device, device, device, device, len(name) + 1, 0} {
		header += fmt.Sprintf("%08x", number)
	}
	a.write([]byte(header + name + "\x00"))
	a.write(content)
}

// write adds bytes, and zeros up to a multiple of 4.
func (a *archive) write(b []byte) {
	for _, part := range [][]byte{b, make([]byte, -(a.written+int64(len(b)))&3)} {
		if a.err != nil {
			return
		}
		var n int
		n, a.err = a.w.Write(part)
		a.written += int64(n)
	}
}
