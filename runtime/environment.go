package runtime

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/tuned"
)

// An EnvError reports a variable of the environment with a wrong value. It names the
// values that the variable takes.
type EnvError = bootstrap.EnvError

// A variable of the environment sets an option of a job. An empty one sets none.
type variable struct {
	name string
	set  func(o *options, text string) error // its error names the values that the variable takes
}

// variables returns all variables that users set. bootstrap.FromEnv reads the variables
// that grun sets. Package collectives reads some of these itself. Init checks their
// values here, so that a mistake is an error at every rank alike.
func variables() []variable {
	return []variable{
		{bootstrap.EnvProvider, (*options).setProvider},
		{bootstrap.EnvHeap, sized(func(bytes int64) Option { return WithHeap(bytes) })},
		{bootstrap.EnvFMAMax, sized(func(bytes int64) Option { return WithFMAMax(int(bytes)) })},
		{bootstrap.EnvPeerTimeout, timed(WithPeerTimeout)},
		{bootstrap.EnvStartTimeout, timed(WithStartTimeout)},
		{bootstrap.EnvVerbose, oneOf(func(o *options, text string) { o.verbose = text == "1" }, "0", "1")},
		{bootstrap.EnvAtomics, (*options).setAtomics},
		{bootstrap.EnvRDMA, func(o *options, text string) error { return WithRDMA(text)(o) }},
		{bootstrap.EnvIface, func(o *options, name string) error { return WithIface(name)(o) }},
		{bootstrap.EnvConnections, func(o *options, text string) error {
			n, err := strconv.Atoi(text)
			if err != nil {
				n = 0 // which WithConnections refuses
			}
			return WithConnections(n)(o)
		}},
		{bootstrap.EnvTLS, oneOf(func(o *options, text string) { o.tls = text == "1" }, "0", "1")},
		{bootstrap.EnvHosts, func(o *options, text string) error { return o.setHosts(strings.Split(text, ",")) }},
		{bootstrap.EnvStats, oneOf(func(o *options, text string) { o.stats = text == "1" }, "0", "1")},
		{tuned.EnvWays, oneOf(nil, "messages")},
		{tuned.EnvExplain, oneOf(nil, "collectives")},
		{tuned.Env, func(_ *options, path string) error { return tuned.Check(path) }},
	}
}

// readEnvironment sets options from the environment.
func (o *options) readEnvironment() error {
	for _, v := range variables() {
		text := os.Getenv(v.name)
		if text == "" {
			continue
		}
		if err := v.set(o, text); err != nil {
			return &EnvError{Name: v.name, Value: text, Want: err.Error()}
		}
	}
	return nil
}

// oneOf returns the setter of a variable that takes one of some words.
func oneOf(set func(*options, string), words ...string) func(*options, string) error {
	return func(o *options, text string) error {
		if !slices.Contains(words, text) {
			return fmt.Errorf("choose %s, or leave it unset", strings.Join(words, " or "))
		}
		if set != nil {
			set(o, text)
		}
		return nil
	}
}

// sized returns the setter of a variable that takes a number of bytes.
func sized(with func(bytes int64) Option) func(*options, string) error {
	return func(o *options, text string) error {
		bytes, err := ParseSize(text)
		if err != nil {
			return err
		}
		return with(bytes)(o)
	}
}

// timed returns the setter of a variable that takes a duration.
func timed(with func(time.Duration) Option) func(*options, string) error {
	return func(o *options, text string) error {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%w; write 30s or 500ms", err)
		}
		return with(d)(o)
	}
}
