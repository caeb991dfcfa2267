package rpipe

import (
	"errors"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// WithoutReminder has the reader tell the writer what was read and freed only when it
// does something itself, so that tests count only what they ask for. The reader still
// tries again when an announcement finds no room in the queue.
func WithoutReminder() Option {
	return func(o *pipe.Options) error { o.Patience = -1; return nil }
}

// Lingering is how many closed ends of this rank still wait for the other one.
func Lingering[T any](r *Reader[T]) int { return r.end().Registry.Lingering() }

// LingeringBy is Lingering by a writer of that rank.
func LingeringBy[T any](w *Writer[T]) int { return w.end().Registry.Lingering() }

// Words are places in an end's own memory that hostile neighbours scribble over.
type Words struct {
	Flags func(i int) []byte // a flag
	Data  []byte
}

// Memory returns a reader's own memory.
func (r *Reader[T]) Memory() Words { return words(r.end().End) }

// Memory returns a writer's own memory.
func (w *Writer[T]) Memory() Words { return words(w.end().End) }

func words(p *pipe.End) Words {
	l := p.Link.(*pipe.FabricLink)
	return Words{Data: l.Local(), Flags: func(i int) []byte { return l.Mine.Block.Bytes[l.Sizes[0]+8*i:][:8] }}
}

// Where things lie in that memory.
const (
	TagsAt     = pipe.CardSize
	CreditFlag = pipe.CreditFlag
	EndFlag    = pipe.EndFlag
)

// DataFlag is the word of a notification in the first lap.
func DataFlag(granule, length int) uint64 {
	return rmalloc.Flag{Kind: rmalloc.Data, Offset: granule, Length: length}.Encode(1)
}

// Tag is the word of freed granules in the first lap.
func Tag(granule, count int) uint64 { return rmalloc.Range{Offset: granule, Count: count}.Tag(1) }

// Withdraw takes the memory of a reader's end away while its writer uses it.
func Withdraw[T any](r *Reader[T]) error {
	m := &r.end().Link.(*pipe.FabricLink).Mine
	if m.Slab != nil {
		return errors.New("a piece of a slab has no keys of its own")
	}
	return errors.Join(m.Region.Close(), m.Whole.Close())
}
