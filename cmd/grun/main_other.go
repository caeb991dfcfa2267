//go:build !linux

// Grun starts the ranks of a job, on Linux. Elsewhere it says what to do instead.
package main

import (
	"fmt"
	"os"

	"github.com/gopgas/gopgas/runtime"
)

func main() {
	fmt.Fprintln(os.Stderr, "grun:", &runtime.PlatformError{Feature: "grun"})
	os.Exit(1)
}
