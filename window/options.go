package window

import (
	"fmt"

	"github.com/gopgas/gopgas/internal/arena"
)

// An Option adjusts a window at its creation. All ranks give the same: else the call that makes the window
// returns runtime.ErrMismatch. [On] is an exception. A number out of an option's bounds is an error of that
// call at the rank that gives it. The call fails at all ranks.
type Option func(*options) error

// An options holds what the options of Allocate have set.
type options struct {
	name        string
	slots       int
	varied      bool  // ranks have different numbers of elements
	shared      bool  // in one array
	lent        *lent // memory of the program
	align       int
	attachments int
}

// DefaultSlots is the number of notification slots without WithSlots.
const DefaultSlots = 64

// maxSlots keeps a window's slots to a size that every rank can afford.
const maxSlots = 1 << 24

// varied is the option of AllocateV.
func varied(o *options) error { o.varied = true; return nil }

// shared is an option of AllocateShared.
func shared(o *options) error { o.shared = true; return nil }

// WithSlots sets how many notification slots the window has at every rank, from 0 to 2^24. Without it that
// is DefaultSlots. A slot takes 8 bytes. Another number is [ErrRange].
func WithSlots(n int) Option {
	return func(o *options) error {
		if n < 0 || n > maxSlots {
			return fmt.Errorf("%d notification slots: %w [0, %d]", n, ErrRange, maxSlots)
		}
		o.slots = n
		return nil
	}
}

// WithAlignment has the elements of each rank begin at a multiple of n bytes, in every process that
// maps them. The number n is a power of two up to 4096; less than 64 has no effect, since without it
// n is 64. Another number is [ErrAlignment]. The array of [AllocateShared] begins so at rank 0.
func WithAlignment(n int) Option {
	return func(o *options) error {
		if n < 1 || n > arena.Page || n&(n-1) != 0 {
			return fmt.Errorf("%w: alignment of %d bytes: no power of two up to %d", ErrAlignment, n, arena.Page)
		}
		o.align = max(n, lineSize)
		return nil
	}
}

// WithAttachments makes room for n pieces of memory that each rank may have attached at a time, from 0 to
// 2^20; see [Window.Attach]. Without it there is room for none. Another number is [ErrRange].
func WithAttachments(n int) Option {
	return func(o *options) error {
		if n < 0 || n > maxAttachments {
			return fmt.Errorf("%d attachments: %w [0, %d]", n, ErrRange, maxAttachments)
		}
		o.attachments = n
		return nil
	}
}

// WithName gives the window a name for error messages. Without it that is a name such as world/window1.
func WithName(name string) Option {
	return func(o *options) error { o.name = name; return nil }
}
