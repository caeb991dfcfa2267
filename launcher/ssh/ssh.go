//go:build linux

// Package ssh reaches other hosts by ssh, or by a command that takes the same arguments.
// It uses the user's configuration, keys and agent.
package ssh

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/gopgas/gopgas/launcher/hosts"
)

// connectTimeout bounds ssh's wait for a connection, in seconds.
const connectTimeout = "10"

// A Backend runs commands on other hosts. Its zero value runs ssh.
type Backend struct {
	// Words are the command and its first arguments, such as ssh -p 2222.
	Words []string
}

// New returns the backend of a command line, whose words are apart by blanks.
func New(command string) Backend { return Backend{strings.Fields(command)} }

// words returns the command that reaches a host, ssh by default.
func (b Backend) words() []string {
	if len(b.Words) == 0 {
		return []string{"ssh"}
	}
	return b.Words
}

// Name names the command in errors.
func (b Backend) Name() string { return b.words()[0] }

// Command returns the command that has the user's shell on a host run line. It asks for no
// password, since grun may have no terminal. Options of Words come first, so they win.
func (b Backend) Command(host hosts.Host, line string) []string {
	words := append([]string{}, b.words()...)
	return append(words, "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout="+connectTimeout, host.String(), line)
}

// remedies gives the next step for a text of ssh. HOST stands for the host.
var remedies = []struct{ said, remedy string }{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", "its key is not the known one: if that is right, remove the old key with ssh-keygen -R HOST"},
	{"Host key verification failed", "its key is not known: connect once with ssh HOST and accept it, or add it to known_hosts"},
	{"Permission denied", "ssh must log in without a password: give it a key (ssh-copy-id HOST), or start an agent (ssh-add)"},
	{"Could not resolve hostname", "its name is unknown: check the name, or give it a HostName in ~/.ssh/config"},
	{"Connection refused", "no ssh server listens there: start sshd, or give its port in ~/.ssh/config"},
	{"Connection timed out", "it does not answer: check that it runs and that a firewall lets ssh pass"},
	{"Operation timed out", "it does not answer: check that it runs and that a firewall lets ssh pass"},
	{"No route to host", "the network does not reach it: check the name, or set a ProxyJump in ~/.ssh/config"},
	{"Network is unreachable", "the network does not reach it: check the name, or set a ProxyJump in ~/.ssh/config"},
}

// Explain returns the error of a command that ended before a program on the host spoke.
// said is the end of its standard error.
func (b Backend) Explain(host hosts.Host, status syscall.WaitStatus, said string) error {
	said = strings.TrimSpace(said)
	for _, r := range remedies {
		if strings.Contains(said, r.said) {
			return fmt.Errorf("%s (%s)", strings.ReplaceAll(r.remedy, "HOST", host.String()), lastLine(said))
		}
	}
	how := fmt.Sprintf("exited with code %d", status.ExitStatus())
	if status.Signaled() {
		how = "was ended by the signal " + status.Signal().String()
	}
	if said != "" {
		how += ": " + lastLine(said)
	}
	if status.Exited() && (status.ExitStatus() == 126 || status.ExitStatus() == 127) {
		return fmt.Errorf("%s %s: grun needs sh, head, mv and uname there", b.Name(), how)
	}
	return fmt.Errorf("%s %s; try %s %s true", b.Name(), how, strings.Join(b.words(), " "), host)
}

func lastLine(text string) string {
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
