//go:build !linux

package window_test

import (
	"context"

	"github.com/gopgas/gopgas/internal/testjob"
)

// withoutCopies is a body of processes, which need Linux.
func withoutCopies(context.Context, *testjob.Rank) {}
