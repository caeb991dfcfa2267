package verbs

// transitions has a bit for every state that may follow. RESET and ERR follow
// any state, as in ibverbs; SQD is left for RTS when posting may go on.
var transitions = [...]uint8{
	StateReset: 1<<StateReset | 1<<StateInit | 1<<StateErr,
	StateInit:  1<<StateReset | 1<<StateInit | 1<<StateRTR | 1<<StateErr,
	StateRTR:   1<<StateReset | 1<<StateRTS | 1<<StateErr,
	StateRTS:   1<<StateReset | 1<<StateRTS | 1<<StateSQD | 1<<StateErr,
	StateSQD:   1<<StateReset | 1<<StateRTS | 1<<StateSQD | 1<<StateErr,
	StateErr:   1<<StateReset | 1<<StateErr,
}

func checkTransition(from, to State, attr Attr) error {
	if int(to) >= len(transitions) {
		return invalid("unknown state %d", uint8(to))
	}
	if transitions[from]&(1<<to) == 0 {
		return stateError("no transition from %v to %v", from, to)
	}
	if to == StateRTR && len(attr.Peer) == 0 {
		return invalid("the peer's address is needed to reach %v", to)
	}
	if attr.Timeout < 0 {
		return invalid("timeout %v is negative", attr.Timeout)
	}
	return nil
}

// maySend and mayReceive: in ERR posts are taken and flushed.
func maySend(s State) bool    { return s == StateRTS || s == StateSQD || s == StateErr }
func mayReceive(s State) bool { return s != StateReset }
