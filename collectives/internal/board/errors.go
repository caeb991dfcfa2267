package board

import (
	"errors"
	"fmt"
)

// A Differs says that another member is in a different call.
type Differs struct {
	Member int    // of the team
	Seq    uint64 // the number of its call
	Theirs uint64 // the chain of its call
}

func (d *Differs) Error() string {
	return fmt.Sprintf("member %d makes another collective call (number %d, chain %#x); all members make the same ones in the same order",
		d.Member, d.Seq, d.Theirs)
}

// A LengthError says that two members disagree about how long the data is that
// one gives the other.
type LengthError struct {
	Member int // the other one
	Theirs int // bytes, as it says
	Mine   int // bytes, as this member says
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("member %d says %d bytes where this one says %d; counts agree between the two ends of a transfer",
		e.Member, e.Theirs, e.Mine)
}

// ErrCorrupt is what shared memory that no member can have written so ends in.
var ErrCorrupt = errors.New("the memory of a collective call was overwritten; look for a put that misses its target")
