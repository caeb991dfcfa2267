// Package corpus holds the common parts of the examples that count words: the
// list of files, the words of a file, and a sequential count.
//
//	files.go   the files below a folder, in an order that all ranks agree on
//	count.go   words, and how often each was seen
//	check.go   counts everything again, alone, and compares every word
//
// A word is a run of ASCII letters, in lower case, and ends where its file ends.
package corpus

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// A Folder is a folder of files to count.
type Folder struct {
	Dir     string
	All     bool      // hidden folders and files that are no text as well
	Program string    // name of the program, in front of its messages
	Log     io.Writer // for messages
}

func (f *Folder) leftOut(err error) { fmt.Fprintf(f.Log, "%s: left out: %v\n", f.Program, err) }

// List returns the regular files below the folder. The order is the same at every
// rank, so that a file's number means the same file everywhere. It skips folders
// that it cannot read; loud prints the error.
func (f *Folder) List(loud bool) ([]string, error) {
	root, err := filepath.EvalSymlinks(f.Dir)
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
				f.leftOut(err)
			}
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root && !f.All:
			return fs.SkipDir
		case d.Type().IsRegular():
			files = append(files, path)
		}
		return nil
	})
	return files, err
}
