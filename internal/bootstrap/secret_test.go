package bootstrap

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecretComesFromAPrivateFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.secret")
	in := lookupIn([]string{EnvSecretFile + "=" + file})
	wrong := func(text string) {
		t.Helper()
		_, err := secret(in)
		var env *EnvError
		require.ErrorAs(t, err, &env)
		require.Equal(t, EnvSecretFile, env.Name)
		require.Contains(t, err.Error(), text)
		require.NotContains(t, err.Error(), hexSecret)
	}
	wrong("make it by (umask 077; od -An -vtx1 -N32 /dev/urandom")
	require.NoError(t, os.WriteFile(file, []byte(hexSecret[:32]+" "+hexSecret[32:]+"\n"), 0o600))
	got, err := secret(in)
	require.NoError(t, err)
	require.Equal(t, testSecret, got)
	for _, mode := range []os.FileMode{0o604, 0o640, 0o644, 0o602} {
		require.NoError(t, os.Chmod(file, mode))
		wrong("run chmod 600 " + file)
	}
	pod := lookupIn([]string{EnvSecretFile + "=" + file, kubernetesIndex + "=0"})
	for mode, fits := range map[os.FileMode]bool{0o440: true, 0o400: true, 0o444: false, 0o460: false} {
		require.NoError(t, os.Chmod(file, mode))
		_, err = secret(pod)
		require.Equal(t, fits, err == nil, "%v: %v", mode, err)
	}
	require.NoError(t, os.Chmod(file, 0o400))
	_, err = secret(in)
	require.NoError(t, err)
	require.NoError(t, os.Remove(file))
	for _, text := range []string{"", hexSecret[2:], hexSecret + "00", "no hex at all"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		wrong("want 32 bytes in hex")
	}
	in = lookupIn([]string{EnvSecretFile + "=" + t.TempDir()})
	wrong("regular file")
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	in = lookupIn([]string{EnvSecretFile + "=" + pipe})
	wrong("regular file")
}

func TestSecretIsNeeded(t *testing.T) {
	_, err := secret(lookupIn(nil))
	require.ErrorContains(t, err, EnvSecretFile)
	require.ErrorContains(t, err, "od -An -vtx1 -N32 /dev/urandom")
	got, err := secret(lookupIn([]string{EnvSecret + "=" + hexSecret}))
	require.NoError(t, err)
	require.Equal(t, testSecret, got)
}
