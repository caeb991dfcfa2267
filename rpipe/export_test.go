package rpipe

// Lingering returns the number of closed ends of the client's rank that wait for their
// peers.
func (h *Heap[T]) Lingering() int { return h.end.Registry.Lingering() }

// Lingering returns the same number of the server's rank.
func (s *Server) Lingering() int { return s.end.Registry.Lingering() }
