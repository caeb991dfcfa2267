package team

import "context"

// A Key identifies a collective call of a team. Two members have the same key if all
// their calls up to this one are the same.
type Key struct {
	Seq   uint64 // the call's number in the team, from 1
	Chain uint64 // a hash of this call and of all calls before it
}

// fnvPrime mixes words into a chain, as the hash of Fowler, Noll and Vo does.
const fnvPrime = 1099511628211

// Next returns the key of the call after that of k.
func (k Key) Next(c *Call) Key { return Key{k.Seq + 1, (k.Chain ^ c.Hash) * fnvPrime} }

// A Stream orders a team's collective calls at this rank. The caller must not change a
// call's description until the call has ended; the stream reads it no later.
type Stream interface {
	// Begin takes a key for a blocking collective call. It returns the key when all
	// earlier calls have ended.
	Begin(ctx context.Context, c *Call) (Key, error)
	// End ends a call that Begin began. With an error it breaks the team. It returns the
	// error for the caller.
	End(key Key, c *Call, err error) error
	// Start takes a key for a collective call that runs after all earlier calls, on a
	// goroutine of the team. If Start returns a key, done gets the result of the call
	// before a later call begins.
	Start(ctx context.Context, c *Call, run func(ctx context.Context, key Key) error, done func(error)) (Key, error)
	// RunHere runs a started call on the caller's goroutine. It does so only if it is the call's
	// turn and the team's goroutine has not begun it. Else it is Hurry.
	RunHere(key Key)
	// Hurry has the goroutine of the team begin, if there are started calls.
	Hurry()
}
