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

// An action is due when an end enters a state, or stays there.
type action uint8

const (
	actNothing action = iota
	actSeek           // look for the peer
	actDeliver        // put the FIN
	actFinish         // post the last flag
	actReset          // tell the peer that the cards differ
	actRelease        // give the memory back
)

// A transition leads to a state. Without a name of one the end stays where it is.
type transition struct {
	to state
	do action
}

// transitions is the whole protocol. Events that a row does not name change nothing.
//
// Invariant: an end connects before it puts. It gives its memory back only after the peer's
// last flag, the peer's reset or the peer's death.
var transitions = [states][events]transition{
	stateOpen: {
		eventAbandon: {stateSynSent, actSeek},
		eventClose:   {stateFinWait, actDeliver},
		eventDiffers: {stateReset, actReset},
		eventUnfit:   {stateTimeWait, actNothing},
	},
	stateSynSent: {
		eventAbandon:   {stateSynSent, actSeek},
		eventLook:      {stateSynSent, actSeek},
		eventPeerLast:  {stateSynSent, actSeek},
		eventPeerReset: {stateSynSent, actSeek},
		eventConnected: {stateFinWait, actDeliver},
		eventAbsent:    {stateListen, actNothing},
		eventVanished:  {stateClosed, actRelease},
		eventDiffers:   {stateReset, actReset},
		eventUnfit:     {stateTimeWait, actNothing},
		eventGone:      {stateClosed, actRelease},
	},
	stateListen: {
		eventAbandon:   {stateSynSent, actSeek},
		eventPeerLast:  {stateSynSent, actSeek},
		eventPeerReset: {stateSynSent, actSeek},
		eventGone:      {stateClosed, actRelease},
	},
	stateFinWait: {
		eventPeerLast: {stateLastAck, actFinish},
		eventGone:     {stateClosed, actRelease},
	},
	stateLastAck: {
		eventPeerLast: {stateLastAck, actFinish},
		eventLast:     {stateClosed, actRelease},
		eventGone:     {stateClosed, actRelease},
	},
	stateReset: {
		eventLook:      {stateReset, actReset},
		eventPeerReset: {stateReset, actReset},
		eventTold:      {stateTimeWait, actNothing},
		eventGone:      {stateClosed, actRelease},
	},
	stateTimeWait: {
		eventPeerReset: {stateClosed, actRelease},
		eventGone:      {stateClosed, actRelease},
	},
}

// on returns the state behind an event, and the action that is due.
func (s state) on(e event) (state, action) {
	t := transitions[s][e]
	if t == (transition{}) {
		return s, actNothing
	}
	return t.to, t.do
}
