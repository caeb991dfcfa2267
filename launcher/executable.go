//go:build linux

package launcher

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// An executable is this program, which other hosts run as their agents.
type executable struct {
	*os.File
	size int64
	hash string // of its bytes, so that no host runs another version
}

// openExecutable opens grun's own program, and hashes it: hosts keep a copy by the hash.
func openExecutable() (*executable, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("open grun itself, to copy it to other hosts: %w", err)
	}
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("read grun itself, to copy it to other hosts: %w", err)
	}
	return &executable{f, size, hex.EncodeToString(sum.Sum(nil))[:32]}, nil
}

// bytes returns a reader of all bytes. Several may read at once.
func (e *executable) bytes() io.Reader { return io.NewSectionReader(e.File, 0, e.size) }
