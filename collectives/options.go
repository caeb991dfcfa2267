package collectives

// An Option adjusts a call. All members give the same: else the call is a runtime.MismatchError. One that
// is nil does nothing.
type Option func(*options)

// options holds what the options of one call set.
type options struct {
	ordered   bool
	algorithm string
}

// collect applies options. It allocates, as options do.
func collect(opts []Option) options {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}

// Deterministic combines exactly as ((a0∘a1)∘a2)∘... in the order of ranks.
// Floating-point results then have the same bits for any length, algorithm and
// provider. It costs nothing where members map each other's memory. Without it the order of
// combination is free for operators that commute.
func Deterministic() Option { return func(o *options) { o.ordered = true } }

// WithAlgorithm takes an algorithm by its name, as [Call.Algorithms] lists them, in
// place of the one that was measured to be best. Another name, or one that this team cannot
// use for the call, is [ErrAlgorithm]. With "" it is as without.
func WithAlgorithm(name string) Option { return func(o *options) { o.algorithm = name } }
