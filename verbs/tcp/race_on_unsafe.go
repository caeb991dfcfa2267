//go:build linux && race

package tcp

import (
	"runtime"
	"unsafe"
)

// The race detector cannot see that a message passed through the kernel. As in package
// syscall, all events before a send happen before all events after a later receive.

var throughKernel byte // never written: its address names the edge

// raceSending goes ahead of each system call that sends, and raceReceived behind each that has received.

func raceSending()  { runtime.RaceReleaseMerge(unsafe.Pointer(&throughKernel)) }
func raceReceived() { runtime.RaceAcquire(unsafe.Pointer(&throughKernel)) }
