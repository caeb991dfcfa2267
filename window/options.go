package window

import "fmt"

// An Option adjusts a window at its creation; all ranks give the same.
type Option func(*options) error

type options struct {
	name   string
	slots  int
	varied bool // ranks have different numbers of elements
}

// DefaultSlots is the number of notification slots without WithSlots.
const DefaultSlots = 64

// maxSlots keeps a window's slots to a size that every rank can afford.
const maxSlots = 1 << 24

// varied is the option of AllocateV.
func varied(o *options) error { o.varied = true; return nil }

// WithSlots sets how many notification slots the window has at every rank.
func WithSlots(n int) Option {
	return func(o *options) error {
		if n < 0 || n > maxSlots {
			return fmt.Errorf("%d notification slots: %w [0, %d]", n, ErrRange, maxSlots)
		}
		o.slots = n
		return nil
	}
}

// WithName gives the window a name for error messages.
func WithName(name string) Option {
	return func(o *options) error { o.name = name; return nil }
}
