//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConnectMakesAPairOfSocketsThatKeepsFramesApart(t *testing.T) {
	machines, err := connect(2)
	require.NoError(t, err)
	for i, m := range machines {
		defer m.socket.Close()
		require.Equal(t, "vm"+strconv.Itoa(i+1), m.name())
	}
	for _, frame := range []string{"first", "second"} {
		_, err := machines[0].socket.Write([]byte(frame))
		require.NoError(t, err)
	}
	b := make([]byte, 100)
	for _, frame := range []string{"first", "second"} {
		n, err := machines[1].socket.Read(b)
		require.NoError(t, err)
		require.Equal(t, frame, string(b[:n]))
	}
}

func TestConnectGivesASingleMachineNoNetwork(t *testing.T) {
	machines, err := connect(1)
	require.NoError(t, err)
	require.Equal(t, []machine{{}}, machines)
}

func TestQemuGivesEachMachineOfANetworkItsNumber(t *testing.T) {
	command := strings.Join(qemu(options{arch: archs["amd64"]}, machine{2, os.Stdin}, ""), " ")
	for _, part := range []string{" machine=2 ", "local.type=fd,local.str=4 ", "mac=52:54:00:00:00:02"} {
		require.Contains(t, command, part)
	}
}

func TestMachinesWriteTheirLinesUnderTheirNames(t *testing.T) {
	var b bytes.Buffer
	out := &lines{out: &b}
	relay(out, strings.NewReader("one\n"), func() {}, func() {})
	relay(&tagged{"vm2: ", out}, strings.NewReader("two\r\nthree"), func() {}, func() {})
	require.Equal(t, "one\nvm2: two\nvm2: three\n", b.String())
}

func TestMachinesOfANetworkShareAKeyOfSSH(t *testing.T) {
	for _, name := range append([]string{"ssh-keygen", "busybox"}, networkPrograms...) {
		if _, err := find(name); err != nil {
			t.Skip(err)
		}
	}
	var b bytes.Buffer
	i := image{archive: newArchive(&b), libraries: newLibraries(systemFolders())}
	require.NoError(t, i.network())
	require.NoError(t, i.close())
	content := map[string]string{}
	for _, e := range entries(t, b.Bytes()) {
		content[e.name] = e.content
	}
	require.Contains(t, content, "bin/ssh")
	require.Contains(t, content, "bin/sshd")
	require.Equal(t, "* "+content["etc/ssh/key.pub"], content["etc/ssh/known"])
	derived, err := exec.Command("ssh-keygen", "-y", "-f", write600(t, content["etc/ssh/key"])).Output()
	require.NoError(t, err)
	require.Equal(t, strings.Fields(content["etc/ssh/key.pub"])[1], strings.Fields(string(derived))[1])
}

func write600(t *testing.T, content string) string {
	t.Helper()
	file := write(t, []byte(content), t.TempDir(), "key")
	require.NoError(t, os.Chmod(file, 0o600))
	return file
}
