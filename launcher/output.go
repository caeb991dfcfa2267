//go:build linux

package launcher

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// maxLine is the longest line that is kept together; a longer one is cut.
	maxLine = 1 << 20
	// drainWait bounds how long the end of a job waits for output that a
	// process outside the job may still be writing.
	drainWait = time.Second
)

// output gives ranks their stdout and stderr and carries the text that they
// print.
type output struct {
	spec    *Spec
	tags    []string    // by rank
	onLoss  func(error) // may not wait: a copier, or the launcher itself, calls it
	mu      sync.Mutex
	sinks   map[io.Writer]*sink
	pending []func() // copiers that have not begun
	copiers sync.WaitGroup
	starts  sync.WaitGroup // of ranks of this host, up to begin
	readers []*os.File
}

// A sink takes whole lines from many ranks.
type sink struct {
	mu     sync.Mutex
	w      io.Writer
	lost   error // error that lost a part of them
	onLoss func(error)
}

// newOutput makes the output of a job, and its folder. It calls onLoss once a writer fails.
func newOutput(spec *Spec, tags []string, onLoss func(error)) (*output, error) {
	o := &output{spec: spec, tags: tags, onLoss: onLoss, sinks: make(map[io.Writer]*sink)}
	if spec.OutputDir != "" {
		if err := os.MkdirAll(spec.OutputDir, 0o777); err != nil {
			return nil, fmt.Errorf("output directory: %w", err)
		}
	}
	return o, nil
}

// open returns the files that a rank writes to. The caller closes owned once the
// rank has them. nil is /dev/null.
func (o *output) open(rank int) (stdout, stderr *os.File, owned []*os.File, err error) {
	if o.spec.OutputDir != "" {
		f, err := o.create(rank)
		return f, f, []*os.File{f}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if stdout, owned, err = o.connect(rank, o.spec.Stdout, nil); err != nil {
		return nil, nil, nil, err
	}
	if stderr, owned, err = o.connect(rank, o.spec.Stderr, owned); err != nil {
		for _, f := range owned {
			f.Close()
		}
	}
	return stdout, stderr, owned, err
}

// create makes the file for the output of a rank.
func (o *output) create(rank int) (*os.File, error) {
	name := filepath.Join(o.spec.OutputDir, fmt.Sprintf("rank-%d.log", rank))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("output of rank %d: %w", rank, err)
	}
	return f, nil
}

// carry carries the output of a rank of another host. It returns at once.
func (o *output) carry(rank int, stdout, stderr io.Reader) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spec.OutputDir == "" {
		o.carryTo(o.spec.Stdout, rank, stdout)
		o.carryTo(o.spec.Stderr, rank, stderr)
		return nil
	}
	f, err := o.create(rank)
	if err != nil {
		return err
	}
	to := o.sink(f)
	var both sync.WaitGroup
	both.Go(func() { copyRaw(to, stdout) })
	both.Go(func() { copyRaw(to, stderr) })
	o.copiers.Go(func() {
		both.Wait()
		f.Close()
	})
	return nil
}

// carryTo copies the output of a rank of another host to a writer, until it ends. It copies bytes as
// they come where ranks of this host write to the file themselves, and else lines, with the rank's tag.
func (o *output) carryTo(w io.Writer, rank int, r io.Reader) {
	if r == nil {
		return
	}
	to := o.sink(w)
	if o.gives(w) { // as ranks of this host write to it
		o.copiers.Go(func() { copyRaw(to, r) })
		return
	}
	o.copiers.Go(func() { copyLines(to, r, o.tags[rank]) })
}

// gives reports whether ranks of this host get the file w itself. A rank in a process group
// of its own is never in the terminal's foreground.
func (o *output) gives(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && !o.spec.Tag && !stopsOutput(f)
}

// sink returns the sink of a writer. The caller holds mu.
func (o *output) sink(w io.Writer) *sink {
	if o.sinks[w] == nil {
		o.sinks[w] = &sink{w: w, onLoss: o.onLoss}
	}
	return o.sinks[w]
}

// connect has a rank's output end up in w.
func (o *output) connect(rank int, w io.Writer, owned []*os.File) (*os.File, []*os.File, error) {
	if w == nil {
		return nil, owned, nil
	}
	if o.gives(w) {
		return w.(*os.File), owned, nil
	}
	r, pipe, err := os.Pipe()
	if err != nil {
		return nil, owned, fmt.Errorf("output of rank %d: %w", rank, err)
	}
	to, tag := o.sink(w), o.tags[rank]
	o.readers = append(o.readers, r)
	o.pending = append(o.pending, func() { copyLines(to, r, tag) })
	return pipe, append(owned, pipe), nil
}

// printFor prints text for a rank, as the rank itself would to its stderr.
func (o *output) printFor(rank int, text string) {
	o.mu.Lock()
	to := o.sink(o.spec.Stderr)
	o.mu.Unlock()
	copyLines(to, strings.NewReader(text), o.tags[rank])
}

// tagsOf returns the prefix of each rank's lines.
func tagsOf(j *job) []string {
	tags := make([]string, j.size)
	if !j.spec.Tag {
		return tags
	}
	for _, p := range j.ranks {
		tags[p.rank] = fmt.Sprintf("[%d] ", p.rank)
		if len(j.hosts) > 1 {
			tags[p.rank] = fmt.Sprintf("[%d@%s] ", p.rank, p.host.name)
		}
	}
	return tags
}

// begin begins to copy; no rank of this host may start afterwards. Where the terminal stops output
// from the background (stty tostop), it also stops a rank that is still in the
// launcher's process group. No process would continue that rank.
func (o *output) begin() {
	for _, copier := range o.pending {
		o.copiers.Go(copier)
	}
	o.pending = nil
}

// finish returns when everything printed has been written. The job's processes
// have ended. For other processes that inherited a pipe, finish waits drainWait
// only. The error reports output that was lost.
func (o *output) finish() error {
	o.starts.Wait() // quick ranks may end before begin
	for _, r := range o.readers {
		r.SetReadDeadline(time.Now().Add(drainWait)) //nolint:errcheck // pipes have deadlines
	}
	o.copiers.Wait()
	for _, r := range o.readers {
		r.Close()
	}
	for _, s := range o.sinks {
		if s.lost != nil {
			return s.lost
		}
	}
	return nil
}

// copyRaw carries r to a sink as it comes.
func copyRaw(to *sink, r io.Reader) {
	chunk := make([]byte, 64<<10)
	for {
		n, err := r.Read(chunk)
		if n > 0 {
			to.write(chunk[:n])
		}
		if err != nil {
			return
		}
	}
}

// copyLines carries r to a sink in whole lines, each with a tag before it.
func copyLines(to *sink, r io.Reader, tag string) {
	var pending, tagged []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := r.Read(chunk)
		pending = append(pending, chunk[:n]...)
		whole := bytes.LastIndexByte(pending, '\n') + 1
		if err != nil || len(pending)-whole > maxLine {
			if whole < len(pending) {
				pending = append(pending, '\n')
			}
			whole = len(pending)
		}
		if whole > 0 {
			tagged = tagged[:0]
			for line := range bytes.Lines(pending[:whole]) {
				tagged = append(append(tagged, tag...), line...)
			}
			to.write(tagged)
			pending = append(pending[:0], pending[whole:]...)
		}
		if err != nil {
			return
		}
	}
}

// write writes lines to the sink in one piece. The first error ends the job after its grace, as
// the failure of a rank does. The sink still takes later lines: no rank waits for room.
func (s *sink) write(lines []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.w.Write(lines); err != nil && s.lost == nil {
		s.lost = fmt.Errorf("output of the ranks was lost: %w", err)
		s.onLoss(s.lost)
	}
}
