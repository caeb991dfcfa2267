package pipe

// A state says how far the closing of an end has come. The words are TCP's. The FIN of an
// end tells the peer that the end sends nothing more. Its last flag tells the peer that the
// end puts nothing more: behind it the peer's memory may be gone. Only the writer's FIN is
// another flag than its last one.
//
//	OPEN ---closes--> SYN_SENT ---connected--> FIN_WAIT ---peer's last flag--> LAST_ACK
//	 |                 |    ^                     |                               |
//	 |          absent |    | peer's last flag    | peer dead            own last flag posted
//	 |                 v    |                     v                               v
//	 |                LISTEN -----------------> CLOSED <--------------------------+
//	 | cards differ                               ^
//	 +-------------> RESET ---told--> TIME_WAIT --+ peer's reset
type state uint32

const (
	stateOpen     state = iota // calls use the end
	stateSynSent               // closed before it was connected: it looks for the peer
	stateListen                // the peer was not there: it finds the card of a closed end
	stateFinWait               // the FIN is delivered: the peer may still put here
	stateLastAck               // the peer's last flag is here, this end's is not posted
	stateReset                 // the cards differ: the peer is to be told
	stateTimeWait              // the peer is told, or cannot be: it may not have told this end
	stateClosed                // the memory goes back
	states
)

var stateNames = [states]string{"OPEN", "SYN_SENT", "LISTEN", "FIN_WAIT", "LAST_ACK", "RESET", "TIME_WAIT", "CLOSED"}

func (s state) String() string { return stateNames[s] }

// An event moves an end from one state to the next.
type event uint8

const (
	noEvent        event = iota
	eventAbandon         // this end closes, and was not connected
	eventClose           // this end closes, and is connected
	eventLook            // the registry looks after the end
	eventConnected       // the peer is found
	eventAbsent          // the peer is not there yet
	eventVanished        // the peer is not there any more: its last flag had come
	eventDiffers         // the cards differ
	eventUnfit           // the peer's memory is no end's, or this end is corrupt
	eventTold            // the peer is told that the cards differ
	eventPeerReset       // the peer says that the cards differ
	eventPeerLast        // the peer's last flag is here
	eventLast            // this end's last flag is posted
	eventGone            // the peer's rank is dead, or the pool is closed
	events
)

// transitions is the whole protocol: the state that an end enters by an event. Events that a row
// does not name change nothing. An end may enter the state in which it is. enter (closing.go)
// does what is due then.
//
// Invariant: an end connects before it puts. It gives its memory back only after the peer's
// last flag, the peer's reset or the peer's death.
var transitions = [states][events]state{
	stateOpen: {
		eventAbandon: stateSynSent,
		eventClose:   stateFinWait,
		eventDiffers: stateReset,
		eventUnfit:   stateTimeWait,
	},
	stateSynSent: {
		eventAbandon:   stateSynSent,
		eventLook:      stateSynSent,
		eventPeerLast:  stateSynSent,
		eventPeerReset: stateSynSent,
		eventConnected: stateFinWait,
		eventAbsent:    stateListen,
		eventVanished:  stateClosed,
		eventDiffers:   stateReset,
		eventUnfit:     stateTimeWait,
		eventGone:      stateClosed,
	},
	stateListen: {
		eventAbandon:   stateSynSent,
		eventPeerLast:  stateSynSent,
		eventPeerReset: stateSynSent,
		eventGone:      stateClosed,
	},
	stateFinWait: {
		eventPeerLast: stateLastAck,
		eventGone:     stateClosed,
	},
	stateLastAck: {
		eventPeerLast: stateLastAck,
		eventLast:     stateClosed,
		eventGone:     stateClosed,
	},
	stateReset: {
		eventLook:      stateReset,
		eventPeerReset: stateReset,
		eventTold:      stateTimeWait,
		eventGone:      stateClosed,
	},
	stateTimeWait: {
		eventPeerReset: stateClosed,
		eventGone:      stateClosed,
	},
}

// on returns the state behind an event, and whether the end enters it.
func (s state) on(e event) (to state, enters bool) {
	if to = transitions[s][e]; to == stateOpen { // no event leads there
		return s, false
	}
	return to, true
}
