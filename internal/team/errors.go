package team

import "errors"

// An OutcomeUnknownError reports that this rank gave up a call that other members may
// have completed. They may use the memory that this rank offered in the call.
type OutcomeUnknownError struct{ Err error }

func (e *OutcomeUnknownError) Error() string { return e.Err.Error() }
func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

// OutcomeUnknown reports whether err is, or wraps, an [OutcomeUnknownError].
func OutcomeUnknown(err error) bool {
	var e *OutcomeUnknownError
	return errors.As(err, &e)
}
