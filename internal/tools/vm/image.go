//go:build linux

package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// init.sh is the guest's first process.
//
//go:embed init.sh
var initScript []byte

// standard lists the programs of this system that a guest with an RDMA device has. Busybox
// provides many more; its shell prefers those of this list, since iproute2's ip
// is /bin/ip.
var standard = []string{
	"busybox", "ip", "rdma", "strace", "ibv_devices", "ibv_devinfo",
	"ib_write_lat", "ib_read_lat", "ib_atomic_lat",
}

// Folders of the guest. Its ld.so searches libFolder, and libibverbs the rest.
const (
	libFolder    = "usr/lib/x86_64-linux-gnu"
	driverFolder = libFolder + "/libibverbs"
	driverConfig = "etc/libibverbs.d/rxe.driver"
)

// image is the guest's first file system while this program writes it.
type image struct {
	archive
	libraries *libraries
	busybox   string // see kernel
}

// makeImage writes the guest's first file system. The file has no name any more,
// so that it disappears with this process.
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
	i := image{archive: newArchive(w), libraries: newLibraries(systemFolders())}
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

// fill adds all files.
func (i *image) fill(o options, k kernel) error {
	for _, folder := range []string{"bin", "dev", "etc", "proc", "run", "sys", "tmp", libFolder} {
		i.folder(folder)
	}
	i.link("lib", "usr/lib") // as Debian has it
	i.busybox = k.busybox
	i.file("init", 0o755, initScript)
	i.file("command.sh", 0o644, commandScript(o))
	i.file("etc/passwd", 0o644, []byte("root:x:0:0:root:/tmp:/busybox/sh\nsshd:x:100:65534::/run/sshd:/busybox/false\n"))
	i.file("etc/hosts", 0o644, []byte("127.0.0.1 localhost\n"+hostNames))
	if o.machines > 1 {
		if err := i.network(); err != nil {
			return err
		}
	}
	for _, module := range k.modules {
		if err := i.copy("modules/"+filepath.Base(module), module); err != nil {
			return err
		}
	}
	if err := i.programs(o); err != nil {
		return err
	}
	if o.arch.rdma {
		if err := i.driver(); err != nil {
			return err
		}
	}
	return i.copyLibraries()
}

// programs adds the standard programs and those that the flags name. It gathers
// libraries for them and for the command.
func (i *image) programs(o options) error {
	var files []string
	if i.busybox != "" {
		files = append(files, i.busybox)
	}
	for _, name := range o.arch.programs {
		file, err := find(name)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	for _, file := range append(files, o.programs...) {
		if err := i.withLibraries("bin/"+filepath.Base(file), file); err != nil {
			return err
		}
	}
	command := o.command[0]
	if !strings.Contains(command, "/") {
		return nil // a program of the machine
	}
	if !filepath.IsAbs(command) {
		command = filepath.Join(o.share, command) // its path in the guest
	}
	if !isFile(command) {
		return nil // a program of the machine, or a mistake that the guest's shell reports
	}
	return i.libraries.addFor(command)
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

// withLibraries copies a program into the image, with the libraries that it loads.
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
	if err != nil {
		return err
	}
	i.file(name, info.Mode(), content)
	return nil
}

// commandScript returns the script that gives init.sh the shared folder and the
// command.
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

// quote returns any string as one word of the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
