package pipe

// An end has a standing: the facts by which it closes. The FIN of an end tells the peer that the end
// sends nothing more. Its last flag tells the peer that the end puts nothing more: behind it the
// peer's memory may be gone. Only the writer's FIN is another flag than its last one.
type standing struct {
	connected bool // to the peer
	broken    bool // the pipe is of no more use
	heard     bool // the peer's last flag is here
	refused   bool // the peer says that the cards differ
	gone      bool // the peer's rank is dead, or the pool is closed

	delivered bool // the FIN has been put
	absent    bool // the peer was not there: it finds the card of a closed end
	differs   bool // this end has found that the cards differ
	told      bool // the peer knows that
	over      bool // neither end puts anything any more
}

// A step is one that an end takes as it closes.
type step uint8

const (
	stepNone    step = iota // the end waits for its peer
	stepSeek                // the end looks for its peer, and connects
	stepTell                // the end tells its peer that the cards differ
	stepDeliver             // the end puts its FIN
	stepFinish              // the end puts its last flag behind the peer's
	stepRelease             // the end gives its memory back
	steps
)

// due is the whole protocol: the next step of an end that closes.
//
//	end                   waits behind the step for
//	not connected         seek: the peer's last flag, or its word that the cards differ
//	connected             deliver: the peer's last flag
//	differs               tell: the peer's word that the cards differ
//	broken                the same word
//
// Invariant: an end connects before it puts. It gives its memory back only after the peer's
// last flag, the peer's word that the cards differ, or the peer's death.
func (s standing) due() step {
	switch {
	case s.gone || s.over:
		return stepRelease
	case s.connected && !s.delivered:
		return stepDeliver
	case s.connected && s.heard:
		return stepFinish
	case s.connected:
		return stepNone
	case s.differs && !s.told:
		return stepTell
	case s.broken && s.refused:
		return stepRelease
	case s.broken:
		return stepNone
	case !s.absent || s.heard || s.refused:
		return stepSeek
	}
	return stepNone
}
