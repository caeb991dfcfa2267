//go:build linux

package ssh

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/launcher/hosts"
)

func TestCommandPutsTheUsersOptionsFirst(t *testing.T) {
	h := hosts.Host{Name: "a", User: "me"}
	require.Equal(t, []string{"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "me@a", "line"}, New("").Command(h, "line"))
	require.Equal(t, []string{"ssh", "-p", "22", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "me@a", "line"}, New(" ssh -p 22 ").Command(h, "line"))
}

func TestExplainNamesTheRemedy(t *testing.T) {
	h := hosts.Host{Name: "a"}
	exit := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	for said, want := range map[string]string{
		"x\nroot@a: Permission denied (publickey).\n": "ssh must log in without a password: give it a key (ssh-copy-id a), or start an agent (ssh-add) (root@a: Permission denied (publickey).)",
		"Host key verification failed.":               "its key is not known: connect once with ssh a and accept it, or add it to known_hosts (Host key verification failed.)",
		"strange":                                     "ssh exited with code 255: strange; try ssh a true",
		"":                                            "ssh exited with code 255; try ssh a true",
	} {
		require.EqualError(t, New("").Explain(h, exit(255), said), want)
	}
	require.ErrorContains(t, New("").Explain(h, syscall.WaitStatus(9), ""), "ssh was ended by the signal killed")
}
