package main

import (
	"os"
	"os/signal"
	"syscall"
)

// catchSignals catches what grun passes on to the ranks, until stop is called. A
// SIGHUP that nohup has the system ignore stays ignored, here and in the ranks.
func catchSignals() (caught chan os.Signal, stop func()) {
	caught = make(chan os.Signal, 16)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGTSTP)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(caught, syscall.SIGHUP)
	}
	return caught, func() { signal.Stop(caught) }
}
