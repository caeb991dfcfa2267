package launcher

import (
	"fmt"
	"os"
)

// input copies the launcher's standard input to the ranks that get it, always
// through pipes. A rank has a process group of its own, so it must not read the
// terminal itself.
type input struct {
	spec  *Spec
	pipes []*os.File
	quit  chan struct{} // closed when the job is over
}

// open returns the file that a rank reads, nil for nothing.
func (in *input) open(rank int) (*os.File, error) {
	to := in.spec.StdinTo
	if in.spec.Stdin == nil || (to != StdinAll && int(to) != rank) {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("input of rank %d: %w", rank, err)
	}
	in.pipes = append(in.pipes, w)
	return r, nil
}

// start begins to copy. With several readers the slowest sets the pace. The
// copying goroutine ends when the source ends, or when all readers have. A
// goroutine that waits in the source's Read stays there. It reads a terminal only
// while this process is in its foreground.
func (in *input) start() {
	if len(in.pipes) > 0 {
		go in.copy()
	}
}

func (in *input) copy() {
	defer in.close()
	source := readerOf(in.spec.Stdin, in.quit)
	chunk := make([]byte, 64<<10)
	open := in.pipes
	for len(open) > 0 {
		n, err := source.Read(chunk)
		var still []*os.File
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
	for _, w := range in.pipes {
		w.Close()
	}
}
