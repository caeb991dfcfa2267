package team

import "context"

// A Key tells a collective call of a team from all others. It is the same at all members
// whose calls are the same up to this one.
type Key struct {
	Seq   uint64 // the call's number in the team, from 1
	Chain uint64 // a hash of this call and of all calls before it
}

// fnvPrime mixes words into a chain, as the hash of Fowler, Noll and Vo does.
const fnvPrime = 1099511628211

// Next returns the key of the call behind that of k.
func (k Key) Next(c *Call) Key { return Key{k.Seq + 1, (k.Chain ^ c.Hash) * fnvPrime} }

// A Stream is the order of a team's collective calls at this rank. A call's
// description stays as it is until the call has ended; the stream looks at it no later.
type Stream interface {
	// Begin takes a key for a blocking collective call. It returns the key when all
	// earlier calls have ended.
	Begin(ctx context.Context, c *Call) (Key, error)
	// End ends a call that Begin began. With an error it breaks the team. It returns the
	// error for the caller.
	End(key Key, c *Call, err error) error
	// Start takes a key for a collective call that runs behind all earlier calls, on a
	// goroutine of the team's. If Start returns nil, done gets the result of the call
	// before a later call begins.
	Start(ctx context.Context, c *Call, run func(ctx context.Context, key Key) error, done func(error)) error
}
