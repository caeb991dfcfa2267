//go:build linux

package main

import (
	"errors"
	"strconv"
	"time"
)

// span is a flag for a length of time: 1.5s, 2m, or, as in mpirun, a bare number
// of seconds.
type span struct{ d *time.Duration }

func (s span) String() string {
	if s.d == nil || *s.d == 0 {
		return "0" // the help omits a default of "0"
	}
	return s.d.String()
}

func (s span) Type() string { return "duration" }

// Set reads a length of time: a number of seconds, or one with a unit.
func (s span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if seconds, convErr := strconv.ParseFloat(text, 64); convErr == nil {
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || d < 0 {
		return errors.New("want a length of time such as 500ms, 30s or 5m")
	}
	*s.d = d
	return nil
}
