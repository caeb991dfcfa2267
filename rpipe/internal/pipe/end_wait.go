package pipe

import "context"

// A waiter is one goroutine's wait for flags of an end.
type waiter struct {
	p     *End
	flags []int
	ready func() bool            // ends the wait when true
	look  func() bool            // lookOnce, made once
	watch func(list []int) []int // watched, made once
	seen  uint64                 // health when the peer was last seen to be well, or gone
	gone  error
}

func (v *waiter) init(p *End) {
	v.p, v.look, v.watch, v.seen = p, v.lookOnce, v.watched, p.team.Health()-1
}

// Await returns nil once ready is true, or else the peer's fate, or the cause of ctx's end.
// It calls ready often. ready looks at these flags, and at state whose changes Ring
// announces. Calls come one at a time.
func (p *End) Await(ctx context.Context, flags []int, ready func() bool) error {
	return p.wait.await(ctx, flags, ready)
}

func (v *waiter) await(ctx context.Context, flags []int, ready func() bool) error {
	v.flags, v.ready = flags, ready
	if v.gone != nil {
		v.seen, v.gone = v.p.team.Health()-1, nil
	}
	err := v.p.Wait(ctx, v.watch, v.look)
	v.flags, v.ready = nil, nil
	if err == nil && v.gone != nil {
		v.p.Progress() // puts that have arrived count
		if !ready() {
			return v.gone
		}
	}
	return err
}

// watched appends the numbers of the flags.
func (v *waiter) watched(list []int) []int { return v.p.Watch(list, v.flags...) }

// Watch appends the numbers by which Wait knows flags of this end.
func (p *End) Watch(list []int, flags ...int) []int {
	for _, i := range flags {
		list = append(list, p.First+i)
	}
	return list
}

// lookOnce reports whether the wait is over.
func (v *waiter) lookOnce() bool {
	if v.ready() {
		return true
	}
	if now := v.p.team.Health(); now != v.seen {
		v.seen, v.gone = now, v.p.Fate()
	}
	// A peer that refuses may be a rank that is well, which is no news of health.
	if far := v.p.far.Load(); far != nil && v.gone == nil {
		v.gone = far.Queue.Err()
	}
	return v.gone != nil
}
