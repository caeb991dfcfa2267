package corpus

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
)

// Counts holds the count of each word. Its pointers let Add count a known word
// without making a string of it.
type Counts map[string]*uint64

// Add counts a word once more.
func (t Counts) Add(word []byte) {
	if n := t[string(word)]; n != nil {
		*n++
		return
	}
	n := uint64(1)
	t[string(word)] = &n
}

// Total returns the sum of all counts.
func (t Counts) Total() (n int64) {
	for _, c := range t {
		n += int64(*c)
	}
	return n
}

const (
	bufferSize = 256 << 10
	// textHead is the number of bytes searched for a NUL, which no text has, as
	// grep and git do.
	textHead = 8000
)

// Count counts the words of files. It stops reading a file at an error; loud
// prints the error.
func (f *Folder) Count(ctx context.Context, t Counts, files []string, loud bool) error {
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

// countFile counts the words of one file. It passes over a file that has a zero byte near its
// beginning, unless All.
func (f *Folder) countFile(ctx context.Context, t Counts, path string, r *bufio.Reader) error {
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

// eachWord calls found for every word of r; found must not keep it. It needs
// memory for the buffer and the longest word only.
func eachWord(ctx context.Context, r *bufio.Reader, found func(word []byte)) error {
	var word []byte
	for ctx.Err() == nil {
		// Peek fills the buffer to return one byte.
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
