//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An object is the least ELF file that names its needs:
//
//	header | program header of the interpreter | sections | their headers
type object struct {
	interpreter string
	modinfo     string
	needed      []string
	runPath     string
}

// section is one of an object; link is the number of another.
type section struct {
	kind elf.SectionType
	name string
	data []byte
	link uint32
}

const headerSize, programSize, sectionSize = 64, 56, 64

// bytes returns the file.
func (o object) bytes(t *testing.T) []byte {
	t.Helper()
	dynamic, text := o.dynamic()
	sections := []section{
		{kind: elf.SHT_NULL},
		{kind: elf.SHT_PROGBITS, name: ".interp", data: []byte(o.interpreter + "\x00")},
		{kind: elf.SHT_PROGBITS, name: ".modinfo", data: []byte(o.modinfo)},
		{kind: elf.SHT_STRTAB, name: ".dynstr", data: text},
		{kind: elf.SHT_DYNAMIC, name: ".dynamic", data: dynamic, link: 3},
		{kind: elf.SHT_STRTAB, name: ".shstrtab"},
	}
	var names, content bytes.Buffer
	headers := make([]elf.Section64, len(sections))
	for i, s := range sections {
		headers[i].Name = uint32(names.Len())
		names.WriteString(s.name + "\x00")
	}
	sections[len(sections)-1].data = names.Bytes()
	for i, s := range sections {
		headers[i].Type, headers[i].Link = uint32(s.kind), s.link
		headers[i].Off, headers[i].Size = headerSize+programSize+uint64(content.Len()), uint64(len(s.data))
		content.Write(s.data)
	}
	header := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: headerSize, Shoff: headerSize + programSize + uint64(content.Len()),
		Ehsize: headerSize, Phentsize: programSize, Shentsize: sectionSize,
		Shnum: uint16(len(sections)), Shstrndx: uint16(len(sections) - 1),
	}
	if o.interpreter != "" {
		header.Phnum = 1
	}
	program := elf.Prog64{Type: uint32(elf.PT_INTERP), Off: headers[1].Off, Filesz: headers[1].Size}
	var out bytes.Buffer
	for _, part := range []any{header, program, content.Bytes(), headers} {
		require.NoError(t, binary.Write(&out, binary.LittleEndian, part))
	}
	return out.Bytes()
}

// dynamic returns the sections .dynamic and .dynstr.
func (o object) dynamic() (entries, text []byte) {
	text = []byte{0}
	add := func(tag elf.DynTag, s string) {
		entries = binary.LittleEndian.AppendUint64(entries, uint64(tag))
		entries = binary.LittleEndian.AppendUint64(entries, uint64(len(text)))
		text = append(text, s+"\x00"...)
	}
	for _, name := range o.needed {
		add(elf.DT_NEEDED, name)
	}
	if o.runPath != "" {
		add(elf.DT_RUNPATH, o.runPath)
	}
	add(elf.DT_NULL, "")
	return entries, text
}

// write puts the file at path, with the folders above it.
func (o object) write(t *testing.T, path ...string) string {
	t.Helper()
	return write(t, o.bytes(t), path...)
}

// write puts content at path, with the folders above it.
func write(t *testing.T, content []byte, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, content, 0o755))
	return file
}
