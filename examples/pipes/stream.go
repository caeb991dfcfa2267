package main

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/runtime"
)

// A block is records of words, behind them a count of 0 where room is left:
//
//	uvarint count | uvarint length | word | ... | 0

// blockSize is the number of bytes of records that travel together. A longer
// record has a block of its own.
const blockSize = 16 << 10

// counts holds the count of each word.
type counts map[string]uint64

// A stream is the writing end of a pipe for records.
type stream struct {
	w     *rpipe.Writer[byte]
	block rpipe.Block[byte]
	used  int // bytes of the block
}

// openStream opens a stream to a rank. Kind: local.
func openStream(ctx context.Context, world *runtime.Team, to int, name string) (*stream, error) {
	w, err := rpipe.OpenWriter[byte](ctx, world, to, rpipe.WithName(name))
	return &stream{w: w}, err
}

// openStreams opens the reading ends of the streams from all ranks. Kind: local.
func openStreams(ctx context.Context, world *runtime.Team, name string) (*fan.In[byte], error) {
	from := make([]int, world.Size())
	for rank := range from {
		from[rank] = rank
	}
	return fan.OpenIn[byte](ctx, world, from, rpipe.WithName(name))
}

// add sends a record now or later. It stores the record in the block that leaves
// next, at the reader itself if that is mapped. Kind: one-sided.
func (s *stream) add(ctx context.Context, word string, n uint64) error {
	need := 2*binary.MaxVarintLen64 + len(word)
	if s.block.Len()-s.used < need {
		if err := s.flush(ctx); err != nil {
			return err
		}
		var err error
		if s.block, err = s.w.Alloc(ctx, max(need, blockSize)); err != nil {
			return err
		}
	}
	mem := s.block.Mem()
	s.used += binary.PutUvarint(mem[s.used:], n)
	s.used += binary.PutUvarint(mem[s.used:], uint64(len(word)))
	s.used += copy(mem[s.used:], word)
	return nil
}

// flush writes the block that is being filled, if any.
func (s *stream) flush(ctx context.Context) error {
	if s.block.Len() == 0 {
		return nil
	}
	if mem := s.block.Mem(); s.used < len(mem) {
		mem[s.used] = 0
	}
	err := s.w.Write(ctx, s.block)
	s.block, s.used = rpipe.Block[byte]{}, 0
	return err
}

// close sends the rest and waits until the reader has read everything. Kind:
// one-sided.
func (s *stream) close(ctx context.Context) error {
	return errors.Join(s.flush(ctx), s.w.Close(ctx))
}

var errRecord = errors.New("a block holds something else than words and counts")

// merge adds the records of streams until all of them have ended, and closes
// them. Kind: one-sided.
func (c counts) merge(ctx context.Context, in *fan.In[byte]) error {
	for b, err := range in.All(ctx) {
		if err == nil {
			err = c.addAll(b.Mem())
		}
		if err == nil {
			err = in.Free(b.Block)
		}
		if err != nil {
			return errors.Join(err, in.Close(ctx))
		}
	}
	return in.Close(ctx)
}

// addAll adds the records of a block.
func (c counts) addAll(block []byte) error {
	for len(block) > 0 {
		n, head := binary.Uvarint(block)
		if n == 0 && head == 1 {
			break
		}
		size, more := binary.Uvarint(block[max(head, 0):])
		if head <= 0 || more <= 0 || size > uint64(len(block)-head-more) {
			return errRecord
		}
		word := block[head+more:][:size]
		c[string(word)] += n
		block = block[head+more+int(size):]
	}
	return nil
}
