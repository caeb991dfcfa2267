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

// ready is the line that init.sh prints when the command begins.
const ready = "vm: ready"

// startTime bounds the time that a start may take without a line: far more than the
// usual 4 seconds, or 20 beside other programs. One in more than a hundred starts
// printed nothing, and the next one did well. So vm makes another attempt, as long as
// no command has begun.
const (
	startTime = 4 * time.Minute
	attempts  = 3
)

var errSilent = errors.New("the machine was silent for too long")

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
	relay(out, console, func() { late.Stop() }, func() { silent.Reset(silence) }) // until the machine has ended
	err = cmd.Wait()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errNoStart):
		return exitFailed, cause
	case errors.Is(cause, errSilent):
		return exitTimeout, fmt.Errorf("the command printed nothing for %v, and the machine was ended: raise -timeout", silence)
	case cause != nil && !errors.Is(cause, context.Canceled):
		return exitFailed, cause
	case cause != nil:
		return exitFailed, errors.New("the process that started this is gone, so the machine was ended")
	case cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0:
		return exitFailed, fmt.Errorf("QEMU: %w", err)
	}
	return exitCode(cmd.ProcessState.ExitCode())
}

// guard makes a command yield to other programs, and die with its parent, however
// the parent ends. Each of the two programs becomes the next, so that one process
// remains.
var guard = []string{"nice", "-n", "10", "setpriv", "--pdeathsig", "KILL", "--"}

// kernelArguments suit a guest that stands still whenever the host is busy: it
// trusts its clocks, and no watchdog takes a pause for a fault. If its kernel
// panics, or is about to, it ends at once.
const kernelArguments = "console=ttyS0 panic=-1 oops=panic mitigations=off " +
	"tsc=reliable no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1"

// processor has all features of QEMU except fast copies of strings. With these
// the kernel would copy with "rep movsb", which QEMU does byte by byte. Readers
// would then see rxe's writes of aligned words torn, as real devices' never are.
const processor = "max,-erms,-fsrm"

// qemu is the command line of a machine.
func qemu(o options, m machine, vmlinux string) []string {
	kernel := kernelArguments
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
	return append(append(append(slices.Clone(guard),
		"qemu-system-x86_64", "-M", "q35,nvdimm="+onOff(o.dax > 0), "-accel", "tcg,thread=multi", "-cpu", processor,
		"-smp", strconv.Itoa(o.cpus), "-m", memory,
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", vmlinux, "-initrd", "/dev/fd/3", "-append", kernel,
		"-serial", "stdio",
		"-device", "isa-debug-exit,iobase=0xf4,iosize=1", // see exitCode
		"-virtfs", "local,path="+strings.ReplaceAll(o.share, ",", ",,")+",mount_tag=share,security_model=none,multidevs=remap",
	), network...), memories(o)...)
}

// memories are the devices with memory.
func memories(o options) (args []string) {
	if o.dax > 0 {
		args = append(args, "-object", fmt.Sprintf("memory-backend-memfd,id=dax,share=on,size=%dM", o.dax), "-device", "nvdimm,memdev=dax")
	}
	if o.bar > 0 {
		args = append(args, "-object", fmt.Sprintf("memory-backend-memfd,id=bar,share=on,size=%dM", o.bar),
			"-device", "ivshmem-plain,memdev=bar,bus=pcie.0,addr=0x10")
	}
	return args
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// relay copies lines as they come, without a terminal's line ends. It does not
// copy the line ready, and calls begun for it; it calls heard for each line.
func relay(out io.Writer, console io.Reader, begun, heard func()) {
	for r := bufio.NewReader(console); ; {
		line, err := r.ReadString('\n')
		heard()
		switch line = strings.TrimRight(line, "\r\n"); {
		case line == ready:
			begun()
		case line != "" || err == nil:
			fmt.Fprintln(out, line)
		}
		if err != nil {
			return
		}
	}
}

// exitBase is the number that init.sh adds to the command's exit code, so that no
// code looks like one of QEMU's own.
const exitBase = 16

// exitMost is the highest exit code that vm can return.
const exitMost = 255>>1 - exitBase

// exitCode turns QEMU's exit code into the command's. QEMU's is 2*byte + 1 if the
// guest writes a byte to isa-debug-exit: 33 for 0, 35 for 1, up to 255 for 111.
// Other codes mean that QEMU failed, or that the guest ended otherwise.
func exitCode(qemu int) (int, error) {
	if qemu < 2*exitBase+1 || qemu%2 == 0 {
		return exitFailed, fmt.Errorf("the machine ended before its command did (QEMU's exit code is %d); -v shows more", qemu)
	}
	return qemu>>1 - exitBase, nil
}
