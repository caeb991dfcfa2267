//go:build linux

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

// Lines of init.sh.
const (
	ready  = "vm: ready" // the command begins
	exited = "vm: exit " // the command has ended, with the code that follows
)

// startTime bounds the time that a start may take without a line: far more than the
// usual 4 seconds, or 20 beside other programs. One in more than a hundred starts
// printed nothing, and the next one did well. So vm makes another attempt, as long as
// no command has begun.
const (
	startTime = 4 * time.Minute
	attempts  = 3
)

// errSilent ends a machine that prints nothing for too long.
var errSilent = errors.New("the machine was silent for too long")

// errEnded ends a machine whose command has ended.
var errEnded = errors.New("the command has ended")

// errNoStart ends a machine whose command does not begin in time. boot then makes another attempt.
var errNoStart = errors.New("the machine did not start; -v shows how far it came")

// boot runs a machine until its command ends and returns the command's exit
// code.
func boot(ctx context.Context, o options, m machine, vmlinux string, image *os.File, out io.Writer) (code int, err error) {
	command, files := qemu(o, m, vmlinux), []*os.File{image} // 3, as -initrd says
	if m.socket != nil {
		files = append(files, m.socket) // 4, as -netdev says
	}
	if o.verbose {
		fmt.Fprintln(out, "vm:", strings.Join(command, " "))
	}
	for range attempts {
		code, err = attend(ctx, command, files, startTime, o.timeout, out)
		if !errors.Is(err, errNoStart) {
			break
		}
		fmt.Fprintln(os.Stderr, "vm:", err)
	}
	return code, err
}

// attend starts a machine and relays its console to out. It ends the machine if
// that is not ready in time, prints nothing for too long, or ctx ends.
func attend(ctx context.Context, command []string, files []*os.File, start, silence time.Duration, out io.Writer) (int, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.ExtraFiles = files
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = 10 * time.Second
	console, err := cmd.StdoutPipe()
	if err != nil {
		return exitFailed, err
	}
	if err := cmd.Start(); err != nil {
		return exitFailed, err
	}
	late := time.AfterFunc(start, func() { stop(errNoStart) })
	defer late.Stop()
	silent := time.AfterFunc(silence, func() { stop(errSilent) })
	defer silent.Stop()
	code, ended := relay(out, console, func() { late.Stop() }, func() { silent.Reset(silence) })
	if ended {
		stop(errEnded)
	}
	err = cmd.Wait()
	if ended {
		return code, nil
	}
	return explain(context.Cause(ctx), silence, cmd.ProcessState, err)
}

// explain returns the exit code and the error for a machine that ended before its command did. cause says why
// this program ended it, and is nil if it ended by itself. QEMU ended with state and err.
func explain(cause error, silence time.Duration, state *os.ProcessState, err error) (int, error) {
	switch {
	case errors.Is(cause, errNoStart):
		return exitFailed, cause
	case errors.Is(cause, errSilent):
		return exitTimeout, fmt.Errorf("the command printed nothing for %v, and the machine was ended: raise -timeout", silence)
	case cause != nil && !errors.Is(cause, context.Canceled):
		return exitFailed, cause
	case cause != nil:
		return exitFailed, errors.New("the process that started this is gone, so the machine was ended")
	case state == nil || state.ExitCode() < 0:
		return exitFailed, fmt.Errorf("QEMU: %w", err)
	}
	return exitFailed, fmt.Errorf("the machine ended before its command did (QEMU's exit code is %d); -v shows more", state.ExitCode())
}

// guard makes a command die with its parent, however the parent ends. It becomes the command, so
// that one process remains. The machine does not yield to other programs: beside busy ones it would
// stand still for longer than handshakes take.
var guard = []string{"setpriv", "--pdeathsig", "KILL", "--"}

// kernelArguments suit a guest that stands still whenever the host is busy: it
// trusts its clocks, and no watchdog takes a pause for a fault. If its kernel
// panics, or is about to, it ends at once.
const kernelArguments = " panic=-1 oops=panic mitigations=off nowatchdog rcupdate.rcu_cpu_stall_suppress=1"

// qemu is the command line of a machine.
func qemu(o options, m machine, vmlinux string) []string {
	kernel := o.arch.kernel + kernelArguments
	if !o.verbose {
		kernel += " quiet"
	}
	var network []string
	if m.socket != nil {
		kernel += fmt.Sprintf(" machine=%d", m.number) // a variable of init.sh
		network = []string{
			"-netdev", "dgram,id=network,local.type=fd,local.str=4",
			"-device", fmt.Sprintf("virtio-net-pci,netdev=network,romfile=,mac=52:54:00:00:00:%02x", m.number),
		}
	}
	memory := strconv.Itoa(o.memory)
	if o.dax > 0 {
		memory += fmt.Sprintf(",slots=1,maxmem=%dM", 2*o.memory+o.dax)
	}
	return append(append(append(append(slices.Clone(guard), o.hardware()...),
		"-accel", "tcg,thread=multi", "-smp", strconv.Itoa(o.cpus), "-m", memory,
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", vmlinux, "-initrd", "/dev/fd/3", "-append", kernel,
		"-serial", "stdio",
		"-virtfs", "local,path="+strings.ReplaceAll(o.share, ",", ",,")+",mount_tag=share,security_model=none,multidevs=remap",
	), network...), memories(o)...)
}

// hardware is QEMU's program and its machine. Of two processors QEMU takes the last.
func (o *options) hardware() []string {
	if o.cpu == "" {
		return o.arch.qemu
	}
	return append(slices.Clone(o.arch.qemu), "-cpu", o.cpu)
}

// memories are the devices with memory.
func memories(o options) (args []string) {
	if o.dax > 0 {
		args = append(args, "-machine", "nvdimm=on", "-object", fmt.Sprintf("memory-backend-memfd,id=dax,share=on,size=%dM", o.dax), "-device", "nvdimm,memdev=dax")
	}
	if o.bar > 0 {
		args = append(args, "-object", fmt.Sprintf("memory-backend-memfd,id=bar,share=on,size=%dM", o.bar),
			"-device", "ivshmem-plain,memdev=bar,bus=pcie.0,addr=0x10")
	}
	if o.nvme > 0 {
		args = append(args, "-device", "pcie-root-port,id=root0,chassis=1,slot=1", "-device", "x3130-upstream,id=up,bus=root0",
			"-device", "xio3130-downstream,id=down0,bus=up,chassis=2,slot=0", "-device", "xio3130-downstream,id=down1,bus=up,chassis=3,slot=1",
			"-device", "pcie-root-port,id=root1,chassis=4,slot=4")
		for i, disk := range []string{fmt.Sprintf("bus=down0,cmb_size_mb=%d", o.nvme), "bus=down1", "bus=root1"} {
			args = append(args, "-drive", fmt.Sprintf("if=none,id=disk%d,format=raw,snapshot=on,file.driver=null-co,file.size=64M,file.read-zeroes=on", i),
				"-device", fmt.Sprintf("nvme,drive=disk%d,serial=disk%d,%s", i, i, disk))
		}
	}
	return args
}

// relay copies lines as they come, without a terminal's line ends, until the line of the
// command's end, or that of the console. It does not copy the line ready, and calls begun
// for it; it calls heard for each line. ended is false if the console ended first.
func relay(out io.Writer, console io.Reader, begun, heard func()) (code int, ended bool) {
	for r := bufio.NewReader(console); ; {
		line, err := r.ReadString('\n')
		heard()
		line = strings.TrimRight(line, "\r\n")
		last := max(strings.LastIndex(line, exited), 0) // the command's last line may have no end
		code, ended := exitCode(line[last:])
		switch {
		case ended:
			if last > 0 {
				fmt.Fprintln(out, line[:last])
			}
			return code, true
		case line == ready:
			begun()
		case line != "" || err == nil:
			fmt.Fprintln(out, line)
		}
		if err != nil {
			return 0, false
		}
	}
}

// exitCode returns the command's exit code from the line with which init.sh ends.
func exitCode(line string) (code int, ok bool) {
	digits, ok := strings.CutPrefix(line, exited)
	code, err := strconv.Atoi(digits)
	return code, ok && err == nil && 0 <= code && code <= 255
}
