//go:build linux

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// catchSignals catches the signals that grun passes on to the ranks, until the
// caller calls stop. A SIGHUP that nohup has the system ignore stays ignored,
// here and in the ranks.
func catchSignals() (caught chan os.Signal, stop func()) {
	caught = make(chan os.Signal, 16)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGTSTP)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(caught, syscall.SIGHUP)
	}
	return caught, func() { signal.Stop(caught) }
}
