package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestExitCodeReturnsTheCommandsCode(t *testing.T) {
	for code := range exitMost + 1 {
		written := code + exitBase // by init.sh
		qemu := (written<<1 | 1) & 0xff
		got, err := exitCode(qemu)
		require.NoError(t, err)
		require.Equal(t, code, got)
	}
	require.Equal(t, 111, exitMost, "init.sh and the documentation say so")
}

func TestOtherExitCodesAreErrorsOfTheMachine(t *testing.T) {
	for _, qemu := range []int{0, 1, 2, 3 /* init.sh failed */, 31, 32, 34, 254} {
		code, err := exitCode(qemu)
		require.Error(t, err, qemu)
		require.Equal(t, exitFailed, code)
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
	code, out, err := attended(t.Context(), t, `cat /dev/fd/3; printf 'one\r\n\r\nvm: ready\r\ntwo'; exit 47`, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 7, code)
	require.Equal(t, "image\none\n\ntwo\n", out)
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
	relay(&out, strings.NewReader("of the kernel\r\n"+ready+"\r\nof the command\r\n"), func() { begun++ }, func() { heard++ })
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
	o := options{share: "/a,b", memory: 512, cpus: 3}
	command := strings.Join(qemu(o, machine{}, "/cache/vmlinux"), " ")
	for _, part := range []string{"-accel tcg,", "-smp 3 -m 512 ", "-kernel /cache/vmlinux ", "path=/a,,b,", " quiet "} {
		require.Contains(t, command, part)
	}
	for _, part := range []string{"netdev", "nvdimm,", "ivshmem"} {
		require.NotContains(t, command, part)
	}
	o.dax, o.bar = 64, 16
	command = strings.Join(qemu(o, machine{}, ""), " ")
	for _, part := range []string{"-M q35,nvdimm=on ", "-m 512,slots=1,maxmem=1088M ", "id=dax,share=on,size=64M -device nvdimm,memdev=dax",
		"id=bar,share=on,size=16M -device ivshmem-plain,memdev=bar,bus=pcie.0,addr=0x10"} {
		require.Contains(t, command, part)
	}
	o.verbose = true
	require.NotContains(t, strings.Join(qemu(o, machine{}, ""), " "), "quiet")
}
