package runtime

import (
	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/memory"
)

// reservationsOf opens the reservations that the ranks of this host share. A rank of
// another user or in a container may not open them. It then reserves for itself alone.
func reservationsOf(env bootstrap.Env) *memory.Reservations {
	if env.Reservations == "" {
		return nil
	}
	r, err := memory.OpenReservations(env.Reservations, env.LocalSize)
	if err != nil {
		return nil
	}
	return r
}
