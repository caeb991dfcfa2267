//go:build linux

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestExitCodeReturnsTheCommandsCode(t *testing.T) {
	for code := range 256 {
		got, ok := exitCode(exited + strconv.Itoa(code))
		require.True(t, ok)
		require.Equal(t, code, got)
	}
	require.Contains(t, string(initScript), `echo "`+exited+`$code"`)
}

func TestOtherLinesAreNoExitCodes(t *testing.T) {
	for _, line := range []string{"", "0", ready, exited, exited + "-1", exited + "256", exited + "1 ", "x" + exited + "1"} {
		_, ok := exitCode(line)
		require.False(t, ok, line)
	}
}

// attended runs a shell script in the place of QEMU.
func attended(ctx context.Context, t *testing.T, script string, timeout time.Duration) (int, string, error) {
	t.Helper()
	image, err := os.Open(write(t, []byte("image\n"), t.TempDir(), "image"))
	require.NoError(t, err)
	defer image.Close()
	var out bytes.Buffer
	code, err := attend(ctx, []string{"sh", "-c", script}, []*os.File{image}, time.Minute, timeout, &out)
	return code, out.String(), err
}

func TestRelayCopiesTheConsoleLineByLine(t *testing.T) {
	code, out, err := attended(t.Context(), t, `cat /dev/fd/3; printf 'one\r\n\r\nvm: ready\r\ntwo\r\nvm: exit 7\r\n'; exec sleep 60`, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 7, code)
	require.Equal(t, "image\none\n\ntwo\n", out)
}

func TestRelayFindsTheExitCodeBehindALineWithoutEnd(t *testing.T) {
	code, out, err := attended(t.Context(), t, `printf 'vm: ready\r\nxvm: exit 7\r\n'; exec sleep 60`, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 7, code)
	require.Contains(t, out, "x\n")
}

func TestAttendReturnsAnErrorForAMachineThatEndsWithoutItsCommand(t *testing.T) {
	for _, status := range []string{"0", "1", "35"} {
		code, out, err := attended(t.Context(), t, "echo line; exit "+status, time.Minute)
		require.ErrorContains(t, err, "QEMU's exit code is "+status)
		require.Equal(t, exitFailed, code)
		require.Equal(t, "line\n", out)
	}
}

func TestAttendEndsAMachineThatIsSilentForTooLong(t *testing.T) {
	code, out, err := attended(t.Context(), t, "echo begun; exec sleep 60", 100*time.Millisecond)
	require.ErrorContains(t, err, "-timeout")
	require.Equal(t, exitTimeout, code)
	require.Contains(t, []string{"", "begun\n"}, out)
}

func TestAttendEndsAMachineThatDoesNotStartEarlier(t *testing.T) {
	code, err := attend(t.Context(), []string{"sleep", "60"}, nil, 50*time.Millisecond, time.Minute, &bytes.Buffer{})
	require.ErrorIs(t, err, errNoStart)
	require.Equal(t, exitFailed, code)
}

func TestRelayKeepsTheReadyLine(t *testing.T) {
	var out bytes.Buffer
	begun, heard := 0, 0
	_, ended := relay(&out, strings.NewReader("of the kernel\r\n"+ready+"\r\nof the command\r\n"), func() { begun++ }, func() { heard++ })
	require.False(t, ended)
	require.Equal(t, 1, begun)
	require.GreaterOrEqual(t, heard, 3, "each line is a sign of life")
	require.Equal(t, "of the kernel\nof the command\n", out.String())
	require.Contains(t, string(initScript), `echo "`+ready+`"`)
}

func TestMachineEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	code, _, err := attended(ctx, t, "exec sleep 60", time.Minute)
	require.ErrorContains(t, err, "gone")
	require.Equal(t, exitFailed, code)
}

func TestAttendReturnsAnErrorForAKilledMachine(t *testing.T) {
	code, _, err := attended(t.Context(), t, "kill -KILL $$", time.Minute)
	require.ErrorContains(t, err, "killed")
	require.Equal(t, exitFailed, code)
	code, err = attend(t.Context(), []string{"/nowhere/qemu"}, nil, time.Minute, time.Minute, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, exitFailed, code)
}

// The machine's process must not outlive the tool, even if that is killed.
func TestMachineEndsWithItsParent(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("no setpriv here")
	}
	script := strings.Join(guard, " ") + ` sleep 60 & echo $!; until grep -q sleep /proc/$!/comm; do :; done; kill -KILL $$`
	out, err := exec.Command("sh", "-c", script).Output()
	require.ErrorContains(t, err, "killed")
	process := filepath.Join("/proc", strings.TrimSpace(string(out)), "stat")
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(process)
		return err != nil || strings.Contains(string(stat), ") Z ") // its new parent may not reap it
	}, testwatch.Patience(), 10*time.Millisecond)
}

func TestQemuArgumentsFollowTheFlags(t *testing.T) {
	o := options{arch: archs["amd64"], share: "/a,b", memory: 512, cpus: 3}
	command := strings.Join(qemu(o, machine{}, "/cache/vmlinux"), " ")
	for _, part := range []string{"-accel tcg,", "-smp 3 -m 512 ", "-kernel /cache/vmlinux ", "path=/a,,b,", " quiet "} {
		require.Contains(t, command, part)
	}
	for _, part := range []string{"netdev", "nvdimm", "ivshmem", "nvme"} {
		require.NotContains(t, command, part)
	}
	o.dax, o.bar, o.nvme, o.cpu = 64, 16, 8, "EPYC"
	command = strings.Join(qemu(o, machine{}, ""), " ")
	for _, part := range []string{"-M q35 ", "-machine nvdimm=on ", "-m 512,slots=1,maxmem=1088M ", "id=dax,share=on,size=64M -device nvdimm,memdev=dax",
		"id=bar,share=on,size=16M -device ivshmem-plain,memdev=bar,bus=pcie.0,addr=0x10", " -cpu EPYC ",
		"serial=disk0,bus=down0,cmb_size_mb=8 ", "serial=disk2,bus=root1"} {
		require.Contains(t, command, part)
	}
	o.arch, o.dax, o.bar, o.nvme, o.cpu = archs["arm64"], 0, 0, 0, ""
	require.Contains(t, strings.Join(qemu(o, machine{}, ""), " "), "qemu-system-aarch64 -M virt ")
	o.verbose = true
	require.NotContains(t, strings.Join(qemu(o, machine{}, ""), " "), "quiet")
}
