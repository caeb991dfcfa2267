package gochan

// Written returns how many blocks a sender has written, once nothing is gathered.
func (s *Sender[T]) Written() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Stats().Written
}
