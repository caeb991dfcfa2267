package farheap

// Lingering is how many closed ends of the client's rank still wait for their peers.
func (h *Heap[T]) Lingering() int { return h.end.Registry.Lingering() }

// Lingering is the same of the server's rank.
func (s *Server) Lingering() int { return s.end.Registry.Lingering() }

// Waits reports whether a goroutine is in Wait ahead of others.
func (s *Server) Waits() bool { return len(s.waiting) > 0 }
