package bootstrap

import "slices"

// An exchange collects the bytes of its members, until all have come.
type exchange struct {
	key     string
	members []int
	parts   [][]byte // nil: has not come
	missing int
}

// contribute takes a rank's bytes to an exchange.
func (s *Server) contribute(rank int, m message) error {
	if !s.valid(rank, m.members) {
		return ErrWire
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.goneMember(m.members); r >= 0 {
		s.tellFailed(rank, m.name, r)
		return nil
	}
	e, clash := s.findExchange(m.name, m.members)
	i := slices.Index(m.members, rank)
	if clash || e.parts[i] != nil {
		s.mismatch(rank, m.name, e)
		return nil
	}
	e.parts[i] = append([]byte{}, m.part()...)
	if e.missing--; e.missing == 0 {
		s.complete(e)
	}
	return nil
}

// valid reports whether members are distinct ranks of the job, rank among them.
func (s *Server) valid(rank int, members []int) bool {
	seen := make([]bool, s.size)
	for _, r := range members {
		if r < 0 || r >= s.size || seen[r] {
			return false
		}
		seen[r] = true
	}
	return rank < s.size && seen[rank]
}

// goneMember returns a member that is dead, else one that has left or is missing, else
// -1.
func (s *Server) goneMember(members []int) int {
	gone := -1
	for _, r := range members {
		switch s.members[r].state {
		case dead:
			return r
		case left, missing:
			gone = r
		}
	}
	return gone
}

// findExchange returns the exchange under key with these members; it makes a new
// one if there is none. Groups that share no rank may use one key at the same
// time; overlapping lists that differ clash.
func (s *Server) findExchange(key string, members []int) (e *exchange, clash bool) {
	for _, e := range s.exchanges[key] {
		if slices.Equal(e.members, members) {
			return e, false
		}
		for _, r := range members {
			if slices.Contains(e.members, r) {
				return e, true
			}
		}
	}
	e = &exchange{key: key, members: members, parts: make([][]byte, len(members)), missing: len(members)}
	s.exchanges[key] = append(s.exchanges[key], e)
	return e, false
}

// complete sends the parts of all members to each. All get the same frame, which is encoded once.
// The caller holds the mutex.
func (s *Server) complete(e *exchange) {
	s.forget(e)
	m := message{kind: kindExchange, name: e.key, parts: e.parts}
	frame, err := m.frame()
	if err != nil {
		frame, _ = (&message{kind: kindFailed, name: e.key, code: codeTooLarge}).frame()
	}
	for _, r := range e.members {
		s.members[r].out.put(frame, len(frame))
	}
}

// forget takes an exchange off the list. The caller holds mu.
func (s *Server) forget(e *exchange) {
	rest := slices.DeleteFunc(s.exchanges[e.key], func(x *exchange) bool { return x == e })
	if len(rest) == 0 {
		delete(s.exchanges, e.key)
	} else {
		s.exchanges[e.key] = rest
	}
}

// mismatch fails an exchange for all ranks that have come to it, and for rank,
// which brought another list.
func (s *Server) mismatch(rank int, key string, e *exchange) {
	s.forget(e)
	frame, _ := (&message{kind: kindFailed, name: key, code: codeMismatch, rank: rank}).frame()
	for i, r := range e.members {
		if e.parts[i] != nil && r != rank {
			s.members[r].out.put(frame, len(frame))
		}
	}
	s.members[rank].out.put(frame, len(frame))
}

// failExchanges ends every exchange of which a gone rank is a member.
func (s *Server) failExchanges(gone int) {
	for _, list := range s.exchanges {
		for _, e := range slices.Clone(list) {
			if !slices.Contains(e.members, gone) {
				continue
			}
			s.forget(e)
			for i, r := range e.members {
				if e.parts[i] != nil && r != gone {
					s.tellFailed(r, e.key, gone)
				}
			}
		}
	}
}

// tellFailed tells a rank that an exchange failed because of another member. The caller holds the
// mutex.
func (s *Server) tellFailed(rank int, key string, gone int) {
	m := message{kind: kindFailed, name: key, rank: gone, code: codeLeft}
	switch s.members[gone].state {
	case dead:
		m.code, m.parts = codeDead, [][]byte{[]byte(s.members[gone].cause)}
	case missing:
		m.code, m.members, m.id = codeMissing, s.ranksIn(missing), uint64(s.start.wait)
	}
	frame, _ := m.frame()
	s.members[rank].out.put(frame, len(frame))
}
