package team

// A Handle leads from a type of runtime to the inner part of a team. A type that embeds
// it is a [Holder].
type Handle struct{ team *Team }

// NewHandle returns the handle that leads to t.
func NewHandle(t *Team) Handle { return Handle{t} }

func (h *Handle) inner() *Team { return h.team }

// A Holder embeds a [Handle], as *runtime.Team does.
type Holder interface{ inner() *Team }

// Of returns the inner part of a team. The team must not be nil.
func Of(h Holder) *Team { return h.inner() }
