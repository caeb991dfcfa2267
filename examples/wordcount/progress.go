package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// A program that takes long shows its progress.
const (
	progressAfter = 2 * time.Second
	progressEvery = 500 * time.Millisecond
)

// showProgress prints the number of claimed files to the terminal until the
// returned function is called. It reads the counter at rank 0.
func (o *options) showProgress(ctx context.Context, c *claims) (stop func()) {
	terminal, ok := o.Log.(*os.File)
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		next := time.NewTimer(progressAfter)
		defer next.Stop()
		shown := false
		for {
			select {
			case <-next.C:
			case <-ctx.Done():
				if shown {
					fmt.Fprint(terminal, "\r\x1b[K")
				}
				return
			}
			if n, err := c.progress(ctx); err == nil {
				fmt.Fprintf(terminal, "\rwordcount: %d of %d files", n, len(c.files))
				shown = true
			}
			next.Reset(progressEvery)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
