package board

import (
	"errors"
	"fmt"
)

// A Differs reports that another member is in a different call.
type Differs struct {
	Member int    // of the team
	Seq    uint64 // the number of its call
	Theirs uint64 // the chain of its call
}

func (d *Differs) Error() string {
	return fmt.Sprintf("member %d makes another collective call (number %d, chain %#x); all members make the same ones in the same order",
		d.Member, d.Seq, d.Theirs)
}

// A LengthError reports that two members disagree on the length of data that one
// gives the other.
type LengthError struct {
	Member int // the peer
	Theirs int // bytes, by the peer
	Mine   int // bytes, by this member
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("member %d says %d bytes where this one says %d; counts agree between the two ends of a transfer",
		e.Member, e.Theirs, e.Mine)
}

// ErrCorrupt: shared memory has a content that no member can have written.
var ErrCorrupt = errors.New("the memory of a collective call was overwritten; look for a put that misses its target")
