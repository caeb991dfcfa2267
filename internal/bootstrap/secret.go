package bootstrap

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode"
)

// makeSecret is the command that makes a file with a secret.
const makeSecret = "(umask 077; od -An -vtx1 -N32 /dev/urandom >job.secret)"

// maxSecretFile bounds the text of a secret: digits, blanks and line ends.
const maxSecretFile = 1024

// secret returns the secret of a job that users start without grun.
func secret(lookup lookup) ([]byte, error) {
	given, err := givenSecret(lookup)
	if err == nil && lookup.set(EnvRun) {
		given = runSecret(lookup, given, EnvRun)
	}
	return given, err
}

// runSecret returns the secret of one run, which the variables name. Users give many runs the
// same secret, and ranks of one run may reach the rendezvous of another one.
func runSecret(lookup lookup, secret []byte, names ...string) []byte {
	sum := hmac.New(sha256.New, secret)
	for _, name := range names {
		text, _ := lookup(name)
		fmt.Fprintf(sum, "%s=%s\n", name, text)
	}
	return sum.Sum(nil)
}

// givenSecret reads the secret as users give it.
//
// The files of Kubernetes belong to root and, for other users, to the group of the pod. So a
// pod's group may read its secret.
func givenSecret(lookup lookup) ([]byte, error) {
	path, _ := lookup(EnvSecretFile)
	text, _ := lookup(EnvSecret)
	switch {
	case path != "" && text != "":
		return nil, &EnvError{EnvSecretFile, path, "set it or " + EnvSecret + ", not both"}
	case path != "":
		closed := fs.FileMode(0o077)
		if lookup.set(kubernetesIndex) {
			closed = 0o037
		}
		return secretFile(path, closed)
	case text != "":
		return parseSecret(text, &EnvError{EnvSecret, "", "want 32 bytes in hex; make a file of them by " + makeSecret + " and name it in " + EnvSecretFile})
	}
	return nil, &EnvError{EnvSecretFile, "", "want a file with a secret, the same at all ranks; make one by " + makeSecret + "; or set " + EnvSecret + " to its content"}
}

// secretFile reads a secret from a file. Its mode must have no bit of closed, or other users
// could open it.
func secretFile(path string, closed fs.FileMode) ([]byte, error) {
	wrong := func(want string) *EnvError { return &EnvError{EnvSecretFile, path, want} }
	missing := func(err error) *EnvError { return wrong(fmt.Sprintf("%v; make it by %s", err, makeSecret)) }
	info, err := os.Stat(path)
	if err != nil {
		return nil, missing(err)
	}
	if !info.Mode().IsRegular() { // to open a pipe would wait for a writer
		return nil, wrong("want a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, missing(err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, wrong(err.Error())
	}
	if mode := info.Mode().Perm(); mode&closed != 0 {
		return nil, wrong(fmt.Sprintf("other users may open it (mode %04o): run chmod 600 %s, and make another secret if it was used", mode, path))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSecretFile))
	if err != nil {
		return nil, wrong(err.Error())
	}
	return parseSecret(string(text), wrong("want 32 bytes in hex in it; make it by "+makeSecret))
}

// parseSecret reads SecretSize bytes in hex, with blanks and line ends between them.
func parseSecret(text string, wrong *EnvError) ([]byte, error) {
	digits := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	bytes, err := hex.DecodeString(digits)
	if err != nil || len(bytes) != SecretSize {
		return nil, wrong
	}
	return bytes, nil
}
