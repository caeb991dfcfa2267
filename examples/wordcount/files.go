package main

import (
	"fmt"
	"hash/fnv"
	"io/fs"
	"path/filepath"
)

// listFiles returns the regular files below the folder. The order is the same
// at every rank, so that a file's number means the same everywhere. Folders
// that cannot be read are left out; loud says so.
func (o *options) listFiles(loud bool) ([]string, error) {
	root, err := filepath.EvalSymlinks(o.dir)
	if err != nil {
		return nil, err
	}
	var files []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == root:
			return err
		case err != nil:
			if loud {
				fmt.Fprintln(o.log, "wordcount: left out:", err)
			}
		case d.IsDir() && d.Name() == ".git" && path != root && !o.all:
			return fs.SkipDir
		case d.Type().IsRegular():
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// fingerprint tells whether two ranks have listed the same files.
func fingerprint(files []string) uint64 {
	h := fnv.New64a()
	for _, f := range files {
		h.Write([]byte(f + "\x00"))
	}
	return h.Sum64()
}
