package collectives

import (
	"context"

	"github.com/gopgas/gopgas/runtime"
)

// Scan combines the vectors of all members up to this one: out[i] = in0[i] ∘ ... ∘
// in(rank)[i]. All vectors have one length. in and out may be the same slice. Kind:
// collective; returns when out is complete, and in may be changed.
func Scan[T any](ctx context.Context, t *runtime.Team, op Op[T], in, out []T, opts ...Option) error {
	var c Call
	fill(&c, scan, 0, len(in), in, out, opts)
	by(&c, &op)
	return run(ctx, t, &c)
}

// ScanCall returns the call of [Scan]. Kind: local.
func ScanCall[T any](op Op[T], in, out []T, opts ...Option) (c Call) {
	fill(&c, scan, 0, len(in), in, out, opts)
	by(&c, &op)
	return c
}

// ExScan is [Scan] without this member's own vector. At rank 0 out is not written. Kind:
// collective; completes as that call does.
func ExScan[T any](ctx context.Context, t *runtime.Team, op Op[T], in, out []T, opts ...Option) error {
	var c Call
	fill(&c, exScan, 0, len(in), in, out, opts)
	by(&c, &op)
	return run(ctx, t, &c)
}

// ExScanCall returns the call of [ExScan]. Kind: local.
func ExScanCall[T any](op Op[T], in, out []T, opts ...Option) (c Call) {
	fill(&c, exScan, 0, len(in), in, out, opts)
	by(&c, &op)
	return c
}
