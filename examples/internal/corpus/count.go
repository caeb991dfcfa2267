package corpus

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
)

// A Tally counts words. Pointers let a known word be counted without making a
// string of it.
type Tally map[string]*uint64

// Add counts a word once more.
func (t Tally) Add(word []byte) {
	if n := t[string(word)]; n != nil {
		*n++
		return
	}
	n := uint64(1)
	t[string(word)] = &n
}

// Total returns how many words were counted, each as often as it was.
func (t Tally) Total() (n int64) {
	for _, c := range t {
		n += int64(*c)
	}
	return n
}

const (
	bufferSize = 256 << 10
	// textHead is how far to look for the NUL byte that no text has, as grep
	// and git do.
	textHead = 8000
)

// Count counts the words of files. Those that cannot be read are left out from
// where the error was; loud says so.
func (f *Folder) Count(ctx context.Context, t Tally, files []string, loud bool) error {
	r := bufio.NewReaderSize(nil, bufferSize)
	for _, path := range files {
		err := f.countFile(ctx, t, path, r)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && loud {
			f.leftOut(err)
		}
	}
	return nil
}

func (f *Folder) countFile(ctx context.Context, t Tally, path string, r *bufio.Reader) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r.Reset(file)
	head, err := r.Peek(textHead)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !f.All && bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	return eachWord(ctx, r, t.Add)
}

// eachWord hands every word of r to found, which must not keep it. It needs
// memory for the buffer and the longest word only.
func eachWord(ctx context.Context, r *bufio.Reader, found func(word []byte)) error {
	var word []byte
	for ctx.Err() == nil {
		// One byte waits until the buffer is filled; the rest is there then.
		_, err := r.Peek(1)
		chunk, _ := r.Peek(r.Buffered())
		for _, b := range chunk {
			if b |= 'a' - 'A'; 'a' <= b && b <= 'z' {
				word = append(word, b)
			} else if len(word) > 0 {
				found(word)
				word = word[:0]
			}
		}
		r.Discard(len(chunk)) //nolint:errcheck // as many are buffered
		if err != nil {
			if len(word) > 0 {
				found(word)
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
	return context.Cause(ctx)
}
