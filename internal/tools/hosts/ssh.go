//go:build linux

package hosts

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// sshPort is the first port of each host's sshd.
const sshPort = 22

// Folders of users that log in by ssh. Each host has them for itself.
const (
	HomeDir = "/run/home"
	TempDir = "/run/tmp"
)

// serverConfig is the configuration of a host's sshd: folder. sshd listens at a second
// port as well.
const serverConfig = `Port 22
Port 2222
SetEnv HOME=` + HomeDir + ` TMPDIR=` + TempDir + `
HostKey %[1]s/key
AuthorizedKeysFile %[1]s/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
AcceptEnv GRUN_* LANG
MaxStartups 100
LogLevel ERROR
`

// clientConfig is an entry of the file for ssh -F: host, address, folder.
const clientConfig = `Host %[1]s
	HostName %[2]s
	User root
	IdentityFile %[3]s/key
	IdentitiesOnly yes
	HostKeyAlias %[1]s
	UserKnownHostsFile %[3]s/known
	GlobalKnownHostsFile none
	BatchMode yes
	LogLevel ERROR
`

// SSH starts an sshd in each host, with a key pair that is made for the test. It returns
// the file for ssh -F, by which a program inside any of the hosts reaches the others by
// their names. The sshds end with their hosts.
func (b *Testbed) SSH() (config string) {
	b.t.Helper()
	if err := lacks("sshd", "ssh", "ssh-keygen"); err != nil {
		unable(b.t, err)
	}
	out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(b.dir, "key")).CombinedOutput()
	b.must(err, "making a key: %s", out)
	public, err := os.ReadFile(filepath.Join(b.dir, "key.pub"))
	b.must(err, "reading the key")
	var client, known strings.Builder
	for _, h := range b.hosts {
		at := h.Addr(IPv4 | IPv6)
		fmt.Fprintf(&client, clientConfig, h.name, at, b.dir)
		fmt.Fprintf(&known, "%s %s", h.name, public)
	}
	b.write("known", known.String())
	b.write("sshd", fmt.Sprintf(serverConfig, b.dir))
	b.write("client", client.String())
	for _, h := range b.hosts {
		b.sshd(h)
	}
	return filepath.Join(b.dir, "client")
}

func (b *Testbed) write(name, text string) {
	b.must(os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600), "writing %s", name)
}

// sshd starts the server of a host and waits until it listens.
func (b *Testbed) sshd(h *Host) {
	b.t.Helper()
	path, err := exec.LookPath("sshd") // sshd insists on its whole path
	b.must(err, "sshd")
	server, err := h.Start(exec.Command(path, "-D", "-f", filepath.Join(b.dir, "sshd"), "-E", filepath.Join(b.dir, h.name+".log")))
	b.must(err, "starting sshd in host %s", h.name)
	for {
		conn, err := h.Dial(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), sshPort))
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-server.Done():
			log, _ := os.ReadFile(filepath.Join(b.dir, h.name+".log"))
			b.t.Fatalf("hosts: sshd of host %s ended: %v\n%s", h.name, server.Wait(), log)
		case <-time.After(10 * time.Millisecond): // sshd does not tell when it listens
		}
	}
}
