package runtime

import (
	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/memory"
)

// reservationsOf opens the reservations that the ranks of this host share. A rank that
// cannot, since it is another user's or in a container, looks at what is left
// by itself.
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
