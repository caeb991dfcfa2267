//go:build linux

package main

import "context"

const lineSize = 64

// rewrite changes a byte of every cache line of b, as a program with new data to
// send does.
func rewrite(b []byte) {
	for i := 0; i < len(b); i += lineSize {
		b[i]++
	}
}

// read reads every cache line of b, as a program that uses its input does.
func read(b []byte) (sum byte) {
	for i := 0; i < len(b); i += lineSize {
		sum += b[i]
	}
	return sum
}

// renew is the preparation of one-sided tasks: rank 0 rewrites its source or
// destination, and the target reads its data.
func (h *harness) renew(sent, came []byte) func() {
	var sum byte
	return func() {
		switch h.rank {
		case 0:
			rewrite(sent)
		case target:
			sum += read(came)
			came[0] = sum
		}
	}
}

// origin has rank 0 alone run a task.
func (h *harness) origin(run func(ctx context.Context, n int) error) func(ctx context.Context, n int) error {
	if h.rank == 0 {
		return run
	}
	return func(context.Context, int) error { return nil }
}
