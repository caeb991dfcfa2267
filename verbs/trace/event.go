package trace

import (
	"fmt"
	"strings"

	"github.com/gopgas/gopgas/verbs/driver"
)

// Kind names the call or completion that an Event reports.
type Kind uint8

const (
	Posted    Kind = iota + 1 // a work request was taken
	Refused                   // a post ended early with Err
	Received                  // a receive was posted
	Completed                 // a completion was polled
	Modified                  // a QP changed state
	Mapped                    // a peer's memory was mapped
	Canceled                  // a request was asked to end early
)

var kindNames = [...]string{"?", "post", "refuse", "recv", "complete", "modify", "map", "cancel"}

// String returns the kind of event in words.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[0]
}

// QP names a queue pair: numbers are unique within a context only, contexts are
// numbered in the order of opening, from 0.
type QP struct {
	Context int
	Num     uint32
}

// String returns the numbers of context and queue pair.
func (q QP) String() string { return fmt.Sprintf("%d/qp%d", q.Context, q.Num) }

// An Event is one call or completion. It holds numbers only, no reference to
// the caller's memory, and no key, since keys are secrets.
type Event struct {
	Kind   Kind
	QP     QP
	ID     uint64
	Op     driver.Opcode // Posted, Completed
	Flags  driver.Flags  // Posted
	Bytes  int           // Posted, Received, Completed, Mapped
	Addr   uint64        // Posted, Mapped: the remote address
	Status driver.Status // Completed
	State  driver.State  // Modified
	Err    error         // Refused, Completed, Modified, Mapped
}

// String returns one readable line without its end.
func (e Event) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v %v", e.QP, e.Kind)
	switch e.Kind {
	case Posted:
		fmt.Fprintf(&s, " id=%d %v %d B", e.ID, e.Op, e.Bytes)
		if remote(e.Op) {
			fmt.Fprintf(&s, " at %#x", e.Addr)
		}
		s.WriteString(flagNames(e.Flags))
	case Received:
		fmt.Fprintf(&s, " id=%d %d B", e.ID, e.Bytes)
	case Completed:
		fmt.Fprintf(&s, " id=%d %v", e.ID, e.Status)
		if e.Status == driver.Success {
			fmt.Fprintf(&s, " %v %d B", e.Op, e.Bytes)
		}
	case Modified:
		fmt.Fprintf(&s, " to %v", e.State)
	case Mapped:
		fmt.Fprintf(&s, " %d B at %#x", e.Bytes, e.Addr)
	case Canceled:
		fmt.Fprintf(&s, " id=%d", e.ID)
	}
	if e.Err != nil {
		fmt.Fprintf(&s, ": %v", e.Err)
	}
	return s.String()
}

// remote reports whether the request names a remote address.
func remote(op driver.Opcode) bool { return op != driver.OpSend }

// flagNames returns the names of flags, each behind a space, in the order of their bits.
func flagNames(f driver.Flags) string {
	s := ""
	for i, name := range []string{" signaled", " inline", " fence", " solicited", " announced", " fetch"} {
		if f&(1<<i) != 0 {
			s += name
		}
	}
	return s
}
