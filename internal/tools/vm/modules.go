//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// rdmaModules are the modules of machines with devices. A kernel has some built in.
var rdmaModules = []string{
	"crc32_generic", // rdma_rxe asks for its function, not by its name
	"rdma_rxe",
	"veth", "virtio_net", // further devices that an rxe device can use
	"nfit", "nd_pmem", "dax_pmem", "device_dax", // memory of -dax
}

// optional lists those of them that newer kernels no longer have as modules.
var optional = []string{"crc32_generic"}

// modules finds a kernel's modules by name, in a folder below lib/modules.
type modules struct {
	files   map[string]string // name -> file
	builtin map[string]bool
}

// scanModules lists the modules of a folder.
func scanModules(folder string) (modules, error) {
	m := modules{map[string]string{}, map[string]bool{}}
	builtin, err := os.ReadFile(filepath.Join(folder, "modules.builtin"))
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(string(builtin)) {
		m.builtin[moduleName(strings.TrimSpace(line))] = true
	}
	return m, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(d.Name(), ".ko") {
			m.files[moduleName(path)] = path
		}
		return err
	})
}

// moduleName returns the name of the module in a file, as other modules name it.
// File names mix "-" and "_", and end in the suffix of a compression.
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return strings.ReplaceAll(name, "-", "_")
}

// A module is a kernel module to load.
type module struct {
	name    string
	content []byte // uncompressed
}

// closure returns the modules of the given names and those that they depend on,
// each behind all that it needs.
func (m modules) closure(names []string) ([]module, error) {
	var order []module
	seen := map[string]bool{}
	var visit func(name string) error
	visit = func(name string) error {
		if seen[name] || m.builtin[name] {
			return nil
		}
		seen[name] = true
		content, err := m.read(name)
		if err != nil {
			return err
		}
		depends, err := dependsOf(content)
		if err != nil {
			return fmt.Errorf("%s: %w", m.files[name], err)
		}
		for _, other := range depends {
			if err := visit(other); err != nil {
				return fmt.Errorf("%w, which %s needs", err, name)
			}
		}
		order = append(order, module{name, content})
		return nil
	}
	for _, name := range names {
		if err := visit(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// read returns the content of a kernel module, unpacked.
func (m modules) read(name string) ([]byte, error) {
	file, ok := m.files[name]
	if !ok {
		return nil, fmt.Errorf("this kernel has no module %s", name)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return unpack(b)
}

// dependsOf reads the names behind "depends=" in a module's section .modinfo. The
// section holds strings "field=value", each with a NUL at its end.
func dependsOf(content []byte) ([]string, error) {
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no section .modinfo: no kernel module")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for field := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok && list != "" {
			return strings.Split(strings.ReplaceAll(list, "-", "_"), ","), nil
		}
	}
	return nil, nil
}
