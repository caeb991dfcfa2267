package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// boot runs the machine until its command ends and returns the command's exit
// code.
func boot(ctx context.Context, o options, vmlinux string, image *os.File, out io.Writer) (int, error) {
	machine := qemu(o, vmlinux)
	if o.verbose {
		fmt.Fprintln(out, "vm:", strings.Join(machine, " "))
	}
	return attend(ctx, machine, image, o.timeout, out)
}

// attend starts a machine, relays its console to out and ends it when it takes
// too long or ctx does.
func attend(ctx context.Context, command []string, image *os.File, timeout time.Duration, out io.Writer) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.ExtraFiles = []*os.File{image} // 3, as -initrd says
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = 10 * time.Second
	console, err := cmd.StdoutPipe()
	if err != nil {
		return exitFailed, err
	}
	if err := cmd.Start(); err != nil {
		return exitFailed, err
	}
	relay(out, console) // until the machine has ended
	err = cmd.Wait()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return exitTimeout, fmt.Errorf("the command took longer than %v, and the machine was ended: raise -timeout", timeout)
	case ctx.Err() != nil:
		return exitFailed, errors.New("whoever started this is gone, and the machine was ended")
	case cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0:
		return exitFailed, fmt.Errorf("QEMU: %w", err)
	}
	return exitCode(cmd.ProcessState.ExitCode())
}

// guard makes a command yield to others, and die with its parent, however that
// ends. Each of the two becomes the next, so that there is one process.
var guard = []string{"nice", "-n", "10", "setpriv", "--pdeathsig", "KILL", "--"}

// kernelArguments are for a guest that stands still whenever the host is busy:
// it trusts its clocks, and no watchdog mistakes that for a fault. When its kernel
// panics, or is about to, it ends at once.
const kernelArguments = "console=ttyS0 panic=-1 oops=panic mitigations=off " +
	"tsc=reliable no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1"

// processor is all that QEMU can do, but for fast copies of strings: the kernel
// would copy with "rep movsb", which QEMU does byte by byte, and rxe's writes of
// aligned words would be seen torn, as real devices' never are.
const processor = "max,-erms,-fsrm"

// qemu is the command line of the machine.
func qemu(o options, vmlinux string) []string {
	kernel := kernelArguments
	if !o.verbose {
		kernel += " quiet"
	}
	return append(slices.Clone(guard),
		"qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", processor,
		"-smp", strconv.Itoa(o.cpus), "-m", strconv.Itoa(o.memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", vmlinux, "-initrd", "/dev/fd/3", "-append", kernel,
		"-serial", "stdio",
		"-device", "isa-debug-exit,iobase=0xf4,iosize=1", // see exitCode
		"-virtfs", "local,path="+strings.ReplaceAll(o.share, ",", ",,")+",mount_tag=share,security_model=none,multidevs=remap",
	)
}

// relay copies lines as they come, without what a terminal's line has at its end.
func relay(out io.Writer, console io.Reader) {
	for r := bufio.NewReader(console); ; {
		line, err := r.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line != "" || err == nil {
			fmt.Fprintln(out, line)
		}
		if err != nil {
			return
		}
	}
}

// exitBase is what init.sh adds to the command's exit code, so that no code
// looks like one of QEMU's own.
const exitBase = 16

// exitMost is the highest exit code that comes through.
const exitMost = 255>>1 - exitBase

// exitCode makes the command's exit code of QEMU's, which is 2*byte + 1 when the
// guest writes a byte to isa-debug-exit: 33 for 0, 35 for 1, up to 255 for 111.
// Others say that QEMU failed, or that the guest ended otherwise.
func exitCode(qemu int) (int, error) {
	if qemu < 2*exitBase+1 || qemu%2 == 0 {
		return exitFailed, fmt.Errorf("the machine ended before its command did (QEMU's exit code is %d); -v shows more", qemu)
	}
	return qemu>>1 - exitBase, nil
}
