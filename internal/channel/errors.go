package channel

import (
	"errors"
	"fmt"
)

// ErrCorrupt reports memory of an endpoint with a content that no peer of this version
// writes.
var ErrCorrupt = errors.New("the memory of a channel was overwritten; look for a put that misses its target")

// A Differs reports that the peer's next message, or its offer, belongs to another call.
type Differs struct {
	Seq uint64 // the number of the peer's call
}

func (d *Differs) Error() string {
	return fmt.Sprintf("the peer makes another collective call (number %d)", d.Seq)
}

// A LengthError reports that the two ends of a message disagree on its length.
type LengthError struct {
	Theirs, Mine int // bytes
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("the peer says %d bytes where this rank says %d", e.Theirs, e.Mine)
}
