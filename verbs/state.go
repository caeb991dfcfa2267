package verbs

import "github.com/gopgas/gopgas/verbs/internal/wq"

// checkTransition returns the reason for which the queue pair may not go to
// another state, or nil.
func checkTransition(from, to State, attr Attr) error {
	if to > StateErr {
		return invalid("unknown state %d", uint8(to))
	}
	if err := wq.Transition(from, to); err != nil {
		return err
	}
	if to == StateRTR && len(attr.Peer) == 0 {
		return invalid("the peer's address is needed to reach %v", to)
	}
	if attr.Timeout < 0 {
		return invalid("timeout %v is negative", attr.Timeout)
	}
	return nil
}
