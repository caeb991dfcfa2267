//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// libraries gathers the shared libraries that programs need, as ld.so(8) would
// find them.
type libraries struct {
	folders      []string          // to search
	files        map[string]string // name -> file
	interpreters map[string]bool   // ld.so, by the paths that programs ask for
}

// systemFolders returns the library folders of this system: those that the parts
// of ld.so.conf list, then those that ld.so searches anyway.
func systemFolders() []string {
	var out []string
	parts, _ := filepath.Glob("/etc/ld.so.conf.d/*.conf") // the pattern is right
	for _, part := range parts {
		text, err := os.ReadFile(part)
		if err != nil {
			continue // listed but gone
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") {
				out = append(out, line)
			}
		}
	}
	return append(out, "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}

func newLibraries(folders []string) *libraries {
	return &libraries{folders, map[string]string{}, map[string]bool{}}
}

// addFor adds the libraries of the program or library in a file, and theirs.
// Files that are not ELF, such as scripts, need none.
func (l *libraries) addFor(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if magic := make([]byte, len(elf.ELFMAG)); !begins(f, magic, elf.ELFMAG) {
		return nil
	}
	program, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if path, err := interpreter(program); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	} else if path != "" {
		l.interpreters[path] = true
	}
	names, err := program.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	folders := append(runPath(program, filepath.Dir(file)), l.folders...)
	for _, name := range names {
		if err := l.add(name, folders); err != nil {
			return fmt.Errorf("%w, which %s needs", err, file)
		}
	}
	return nil
}

// add adds a library by its name, and the libraries that it needs.
func (l *libraries) add(name string, folders []string) error {
	if l.files[name] != "" {
		return nil
	}
	for _, folder := range folders {
		file := filepath.Join(folder, name)
		if isFile(file) {
			l.files[name] = file
			return l.addFor(file)
		}
	}
	return fmt.Errorf("no library %s in %s", name, strings.Join(folders, ", "))
}

// begins reports whether a file begins with a text.
func begins(r io.ReaderAt, buffer []byte, with string) bool {
	_, err := r.ReadAt(buffer, 0)
	return err == nil && string(buffer) == with
}

// interpreter returns the path of the ld.so that a program names; libraries and
// static programs name none.
func interpreter(program *elf.File) (string, error) {
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			path, err := io.ReadAll(p.Open())
			return string(bytes.TrimRight(path, "\x00")), err
		}
	}
	return "", nil
}

// runPath returns the folders that a file has searched first. origin is the
// folder of the file.
func runPath(file *elf.File, origin string) (folders []string) {
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		lists, err := file.DynString(tag)
		if err != nil {
			continue // a static program
		}
		for _, list := range lists {
			for folder := range strings.SplitSeq(list, ":") {
				folders = append(folders, strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(folder))
			}
		}
	}
	return folders
}

// find returns the file of a program of the system.
func find(program string) (string, error) {
	for _, folder := range []string{"/usr/bin", "/usr/sbin", "/bin", "/sbin"} {
		file := filepath.Join(folder, program)
		if isFile(file) {
			return file, nil
		}
	}
	return "", fmt.Errorf("%w: the program %s", os.ErrNotExist, program)
}

// isFile reports whether there is an ordinary file at path.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
