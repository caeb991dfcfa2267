package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// A tally counts words. Pointers let a known word be counted without making a
// string of it.
type tally map[string]*uint64

func (t tally) add(word []byte) {
	if n := t[string(word)]; n != nil {
		*n++
		return
	}
	n := uint64(1)
	t[string(word)] = &n
}

func (t tally) total() (n int64) {
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

// countFiles counts the words of files. Those that cannot be read are left out
// from where the error was; loud says so.
func (o *options) countFiles(ctx context.Context, t tally, files []string, loud bool) error {
	r := bufio.NewReaderSize(nil, bufferSize)
	for _, path := range files {
		err := o.countFile(ctx, t, path, r)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && loud {
			fmt.Fprintln(o.log, "wordcount: left out:", err)
		}
	}
	return nil
}

func (o *options) countFile(ctx context.Context, t tally, path string, r *bufio.Reader) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r.Reset(f)
	head, err := r.Peek(textHead)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !o.all && bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	return eachWord(ctx, r, t.add)
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
