package runtime

import (
	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/memory"
)

// roomOf opens the room in which the ranks of this host claim memory. A rank that
// cannot, since it is another user's or in a container, looks at what is left
// by itself.
func roomOf(env bootstrap.Env) *memory.Room {
	if env.Room == "" {
		return nil
	}
	room, err := memory.OpenRoom(env.Room, env.LocalSize)
	if err != nil {
		return nil
	}
	return room
}
