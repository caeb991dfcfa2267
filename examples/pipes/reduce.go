package main

import (
	"context"
	"errors"
	"hash/fnv"

	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/examples/internal/corpus"
	"github.com/gopgas/gopgas/runtime"
)

// reduce counts this rank's files and sends the words to their owners, while it
// adds up the words that it owns. It returns the latter. Kind: collective.
func (o *options) reduce(ctx context.Context, world *runtime.Team, files []string) (counts, error) {
	in, err := openStreams(ctx, world, "words")
	if err != nil {
		return nil, err
	}
	out := make([]*stream, world.Size())
	for i := range out {
		if out[i], err = openStream(ctx, world, i, "words"); err != nil {
			return nil, err
		}
	}
	mine := counts{}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return mine.merge(ctx, in) })
	both.Go(func() error {
		err := o.countShare(ctx, world, files, out)
		for _, s := range out {
			err = errors.Join(err, s.close(ctx))
		}
		return err
	})
	return mine, both.Wait()
}

// filesAtOnce is the number of files after which a rank sends its counts.
const filesAtOnce = 16

// countShare counts every size-th file and sends the words.
func (o *options) countShare(ctx context.Context, world *runtime.Team, files []string, out []*stream) error {
	var some []string
	words := corpus.Counts{}
	for i := world.Rank(); i < len(files); i += world.Size() {
		if some = append(some, files[i]); len(some) < filesAtOnce && i+world.Size() < len(files) {
			continue
		}
		if err := o.Folder().Count(ctx, words, some, true); err != nil {
			return err
		}
		for word, n := range words {
			if err := out[owner(word, len(out))].add(ctx, word, *n); err != nil {
				return err
			}
		}
		clear(words)
		some = some[:0]
	}
	return nil
}

// owner returns the rank that adds a word up.
func owner(word string, ranks int) int {
	h := fnv.New64a()
	h.Write([]byte(word))
	return int(h.Sum64() % uint64(ranks))
}

// gather returns the words of all ranks at rank 0, and nil at the rest. Kind:
// collective.
func gather(ctx context.Context, world *runtime.Team, mine counts) (counts, error) {
	out, err := openStream(ctx, world, 0, "result")
	if err != nil {
		return nil, err
	}
	both, ctx := errgroup.WithContext(ctx)
	all := counts{}
	if world.Rank() == 0 {
		in, err := openStreams(ctx, world, "result")
		if err != nil {
			return nil, err
		}
		both.Go(func() error { return all.merge(ctx, in) })
	}
	both.Go(func() error {
		for word, n := range mine {
			if err := out.add(ctx, word, n); err != nil {
				return err
			}
		}
		return out.close(ctx)
	})
	return all, both.Wait()
}
