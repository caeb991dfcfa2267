package team

import "errors"

// An UndecidedError says that this rank gave up a call on which the other members may
// agree all the same: they may use memory that this rank offered in it.
type UndecidedError struct{ Err error }

func (e *UndecidedError) Error() string { return e.Err.Error() }
func (e *UndecidedError) Unwrap() error { return e.Err }

// Undecided tells that err is, or wraps, an [UndecidedError].
func Undecided(err error) bool {
	var e *UndecidedError
	return errors.As(err, &e)
}
