package team

import "errors"

// An OutcomeUnknownError says that this rank gave up a call which the other members may
// have completed. They may use memory that this rank offered in it.
type OutcomeUnknownError struct{ Err error }

func (e *OutcomeUnknownError) Error() string { return e.Err.Error() }
func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

// OutcomeUnknown reports whether err is, or wraps, an [OutcomeUnknownError].
func OutcomeUnknown(err error) bool {
	var e *OutcomeUnknownError
	return errors.As(err, &e)
}
