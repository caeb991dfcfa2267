//go:build linux

package launcher

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// input copies the launcher's standard input to the ranks that get it, always
// through pipes. A rank has a process group of its own, so it must not read the
// terminal itself.
type input struct {
	spec *Spec
	quit chan struct{} // closed when the job is over

	mu    sync.Mutex
	pipes []io.WriteCloser // to the ranks; streams to those of other hosts
}

// feeds reports whether a rank reads the launcher's standard input.
func (in *input) feeds(rank int) bool {
	to := in.spec.StdinTo
	return in.spec.Stdin != nil && (to == StdinAll || int(to) == rank)
}

// add adds the writing end of a pipe to a rank.
func (in *input) add(w io.WriteCloser) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pipes = append(in.pipes, w)
}

// list returns the pipes so far.
func (in *input) list() []io.WriteCloser {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.pipes)
}

// open returns the file that a rank reads, nil for nothing.
func (in *input) open(rank int) (*os.File, error) {
	if !in.feeds(rank) {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("input of rank %d: %w", rank, err)
	}
	in.add(w)
	return r, nil
}

// start begins to copy. With several readers the slowest sets the pace. The
// copying goroutine ends when the source ends, or when all readers have. A
// goroutine that waits in the source's Read stays there. It reads a terminal only
// while this process is in its foreground.
func (in *input) start() {
	if len(in.list()) > 0 {
		go in.copy()
	}
}

// copy hands grun's standard input to its ranks, until it ends or none of them reads any more.
func (in *input) copy() {
	defer in.close()
	source := readerOf(in.spec.Stdin, in.quit)
	chunk := make([]byte, 64<<10)
	open := in.list()
	for len(open) > 0 {
		n, err := source.Read(chunk)
		var still []io.WriteCloser
		for _, w := range open {
			if _, err := w.Write(chunk[:n]); err == nil {
				still = append(still, w)
			}
		}
		open = still
		if err != nil {
			return
		}
	}
}

// close gives the readers end-of-file.
func (in *input) close() {
	for _, w := range in.list() {
		w.Close() //nolint:errcheck // gone is fine
	}
}
