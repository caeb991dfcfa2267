package faulty

import (
	"fmt"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// These are the defaults of MaxDelay and MaxPolls.
const (
	DefaultMaxDelay = 200 * time.Microsecond
	DefaultMaxPolls = 16
)

// A Plan lists faults and how often each happens. Chances lie between 0 (never)
// and 1 (always).
type Plan struct {
	Seed uint64

	// A hold ends after at most MaxDelay, or MaxPolls polls of the context's CQs, whichever comes
	// first. Package faulty draws each hold between zero and these bounds. 0 takes the default.
	MaxDelay time.Duration
	MaxPolls int

	DelayStarts      float64 // chance that a request is held before it starts
	DelayCompletions float64 // chance that a completion is held before it can be polled
	Reorder          float64 // chance that a READ or an atomic lets later requests pass

	// These make PostSend refuse only while a completion of the queue pair waits to be
	// polled: polling then helps.
	PartialPosts float64 // chance that PostSend takes only some of several requests
	QueueFull    float64 // chance that PostSend takes none

	Errors []Error
	Cuts   []Cut
	Stall  Stall

	HideMapper          bool // even where there are no faults
	KeepMapper          bool // puts through a mapping go around all faults
	HideCanceler        bool
	HideExtendedAtomics bool
	HideAppliedWrites   bool
	HideCoherentAtomics bool
	HideBlocks          bool
	NeedLocalKeys       bool // segments must name registered memory
	RefuseUnpaged       bool // kinds of memory without pages of the system (driver.Kind.Paged)
	MaxInline           int  // lowers what the device takes; 0 leaves it
	MaxDepth            int  // of a queue pair's queues, likewise
}

// A Target chooses queue pairs: the Nth that was created on the Nth context
// that was opened, counting from 1. 0 chooses all.
type Target struct{ Context, QP int }

func (t Target) is(q *qp) bool {
	return (t.Context == 0 || t.Context == q.dev.number) && (t.QP == 0 || t.QP == q.number)
}

// faults reports whether the plan has faults at random times.
func (p *Plan) faults() bool {
	return p.DelayStarts > 0 || p.DelayCompletions > 0 || p.Reorder > 0 || p.PartialPosts > 0 || p.QueueFull > 0 ||
		len(p.Errors) > 0 || len(p.Cuts) > 0 || p.Stall.Every > 0
}

func (p *Plan) hidesMapper() bool { return p.HideMapper || p.faults() && !p.KeepMapper }

// passive reports whether the plan changes nothing.
func (p *Plan) passive() bool {
	return !p.faults() && !p.HideMapper && !p.HideCanceler && !p.HideExtendedAtomics &&
		!p.HideAppliedWrites && !p.HideCoherentAtomics && !p.HideBlocks && !p.NeedLocalKeys && !p.RefuseUnpaged && p.MaxInline == 0 && p.MaxDepth == 0
}

// setDefaults fills in the bounds of delays.
func (p *Plan) setDefaults() {
	if p.MaxDelay == 0 {
		p.MaxDelay = DefaultMaxDelay
	}
	if p.MaxPolls == 0 {
		p.MaxPolls = DefaultMaxPolls
	}
}

// check returns driver.ErrInvalid with the mistake in a plan, or nil.
func (p *Plan) check() error {
	for _, c := range []struct {
		name   string
		chance float64
	}{
		{"DelayStarts", p.DelayStarts}, {"DelayCompletions", p.DelayCompletions}, {"Reorder", p.Reorder},
		{"PartialPosts", p.PartialPosts}, {"QueueFull", p.QueueFull},
	} {
		if !(c.chance >= 0 && c.chance <= 1) {
			return invalid("%s is %v, a chance lies between 0 and 1", c.name, c.chance)
		}
	}
	switch {
	case p.MaxDelay < 0 || p.MaxPolls < 0:
		return invalid("MaxDelay %v and MaxPolls %d must not be negative", p.MaxDelay, p.MaxPolls)
	case p.MaxInline < 0 || p.MaxDepth < 0:
		return invalid("MaxInline %d and MaxDepth %d must not be negative", p.MaxInline, p.MaxDepth)
	case p.KeepMapper && p.HideMapper:
		return invalid("KeepMapper and HideMapper contradict each other")
	case p.Stall.Every < 0 || p.Stall.For < 0 || p.Stall.Every > 0 && p.Stall.For == 0:
		return invalid("a stall needs a positive time: every %d requests for %v", p.Stall.Every, p.Stall.For)
	}
	for _, e := range p.Errors {
		if e.Request < 1 || e.Status == driver.Success || e.Status > driver.GeneralError {
			return invalid("request %d cannot fail with %q: requests count from 1", e.Request, e.Status)
		}
	}
	for _, c := range p.Cuts {
		if c.Request < 1 {
			return invalid("no request %d to cut at: requests count from 1", c.Request)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: faulty plan: %s", driver.ErrInvalid, fmt.Sprintf(format, args...))
}
