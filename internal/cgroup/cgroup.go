// Package cgroup finds the control groups that bound this process, in both
// versions of the kernel's file system.
//
//	/proc/self/cgroup    this process's group, for each controller
//	/sys/fs/cgroup/...   its limits and use, and those of all groups above it
package cgroup

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A Group is a control group of this process, its own or one above.
type Group struct {
	Name string // as in /proc/self/cgroup
	V2   bool   // of version 2 of the file system, whose files have other names

	root fs.FS
	dir  string
}

// Above lists the groups of a controller above this process, its own first. root
// is the file system's root. Without /proc/self/cgroup the list is empty.
func Above(root fs.FS, controller string) []Group {
	data, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var found []Group
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, v2 := "sys/fs/cgroup", parts[1] == ""
		if !v2 {
			if !slices.Contains(strings.Split(parts[1], ","), controller) {
				continue
			}
			mount = path.Join(mount, controller)
		}
		for name := path.Join("/", parts[2]); ; name = path.Dir(name) {
			found = append(found, Group{Name: name, V2: v2, root: root, dir: path.Join(mount, name)})
			if name == "/" {
				break
			}
		}
	}
	return found
}

// Read returns the content of one of the group's files.
func (g Group) Read(file string) ([]byte, error) {
	return fs.ReadFile(g.root, path.Join(g.dir, file))
}

// Number reads a file that holds one number; ok is false for any other content,
// such as "max".
func (g Group) Number(file string) (n int64, ok bool) {
	data, err := g.Read(file)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 64)
	return n, err == nil
}
