package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// init.sh is the guest's first process.
//
//go:embed init.sh
var initScript []byte

// standard are the programs of the system that every guest has, beside those of
// busybox.
var standard = []string{
	"ip", "rdma", "strace", "ibv_devices", "ibv_devinfo",
	"ib_write_lat", "ib_read_lat", "ib_atomic_lat",
}

// Where the guest has things. Its ld.so looks in libFolder by itself, and
// libibverbs in the others.
const (
	binFolder    = "usr/bin"
	libFolder    = "usr/lib/x86_64-linux-gnu"
	driverFolder = libFolder + "/libibverbs"
	driverConfig = "etc/libibverbs.d/rxe.driver"
)

// image is the guest's first file system while it is written.
type image struct {
	archive
	folders   map[string]bool
	libraries *libraries
}

// makeImage writes the guest's first file system. The file has no name any more,
// so that nothing stays behind however this ends.
func makeImage(o options, k kernel) (*os.File, error) {
	file, err := os.CreateTemp("", "vm-initramfs-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, err
	}
	w := bufio.NewWriterSize(file, 1<<20)
	i := image{archive{w: w}, map[string]bool{".": true}, newLibraries(systemFolders())}
	if err = i.fill(o, k); err == nil {
		err = i.close()
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("the machine's initramfs: %w", err)
	}
	return file, nil
}

// fill adds everything.
func (i *image) fill(o options, k kernel) error {
	for _, folder := range []string{"bin", "dev", "etc", "proc", "run", "sys", "tmp"} {
		i.parents(folder + "/.")
	}
	// One folder of libraries, as Debian has it.
	i.parents(libFolder + "/.")
	i.link("lib", "usr/lib")
	i.folders["lib"] = true
	i.add("init", 0o755, initScript)
	i.add("command.sh", 0o644, commandScript(o))
	i.add("etc/passwd", 0o644, []byte("root:x:0:0:root:/tmp:/bin/sh\n"))
	i.add("etc/hosts", 0o644, []byte("127.0.0.1 localhost\n"))
	for _, module := range k.modules {
		if err := i.copy("modules/"+filepath.Base(module), module); err != nil {
			return err
		}
	}
	if err := i.programs(o); err != nil {
		return err
	}
	if err := i.driver(); err != nil {
		return err
	}
	return i.copyLibraries()
}

// programs adds busybox, the standard programs and those that the flags name,
// and gathers libraries for them and for the command.
func (i *image) programs(o options) error {
	busybox, err := find("busybox")
	if err != nil {
		return err
	}
	if err := i.copy("bin/busybox", busybox); err != nil {
		return err
	}
	programs := o.programs
	for _, name := range standard {
		file, err := find(name)
		if err != nil {
			return err
		}
		programs = append(programs, file)
	}
	for _, file := range programs {
		if name := binFolder + "/" + filepath.Base(file); !i.folders[name] {
			i.folders[name] = true
			if err := i.withLibraries(name, file); err != nil {
				return err
			}
		}
	}
	// Relative to the folder in which it will run.
	command := o.command[0]
	if !filepath.IsAbs(command) {
		command = filepath.Join(o.share, command)
	}
	if info, err := os.Stat(command); err == nil && info.Mode().IsRegular() && strings.Contains(o.command[0], "/") {
		return i.libraries.addFor(command)
	}
	return nil
}

// driver adds libibverbs' driver of rxe devices.
func (i *image) driver() error {
	found, err := filepath.Glob("/" + driverFolder + "/librxe-*.so")
	if err != nil || len(found) == 0 {
		return fmt.Errorf("no /%s/librxe-*.so: is the package ibverbs-providers installed?", driverFolder)
	}
	for _, file := range found {
		if err := i.withLibraries(driverFolder+"/"+filepath.Base(file), file); err != nil {
			return err
		}
	}
	return i.copy(driverConfig, "/"+driverConfig)
}

func (i *image) withLibraries(name, file string) error {
	if err := i.libraries.addFor(file); err != nil {
		return err
	}
	return i.copy(name, file)
}

// copyLibraries adds the libraries gathered.
func (i *image) copyLibraries() error {
	for name, file := range i.libraries.files {
		if err := i.copy(libFolder+"/"+name, file); err != nil {
			return err
		}
	}
	for file := range i.libraries.interpreters {
		if err := i.copy(strings.TrimPrefix(file, "/"), file); err != nil {
			return err
		}
	}
	return nil
}

// copy adds a file of this system, with its permissions.
func (i *image) copy(name, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	i.add(name, info.Mode(), content)
	return err
}

// add adds a file and the folders above it.
func (i *image) add(name string, perm fs.FileMode, content []byte) {
	i.parents(name)
	i.file(name, perm, content)
}

// parents adds the folders above name that are not there yet.
func (i *image) parents(name string) {
	if folder := path.Dir(name); !i.folders[folder] {
		i.parents(folder)
		i.folders[folder] = true
		i.folder(folder)
	}
}

// commandScript tells init.sh the shared folder and the command.
func commandScript(o options) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "share=%s\ncommand() {\n", quote(o.share))
	for _, variable := range o.env {
		fmt.Fprintf(&b, "\texport %s\n", quote(variable))
	}
	b.WriteString("\texec")
	for _, word := range o.command {
		b.WriteString(" " + quote(word))
	}
	b.WriteString("\n}\n")
	return []byte(b.String())
}

// quote makes one word of the shell of any string.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
