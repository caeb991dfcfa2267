//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// install installs the missing ones of packages.
func install(ctx context.Context, packages []string) error {
	// dpkg-query fails if it does not know some of them, and lists the rest.
	list, _ := exec.CommandContext(ctx, "dpkg-query", append([]string{"-W", "-f", "${Package} ${db:Status-Status}\n"}, packages...)...).Output()
	missing := missingOf(packages, string(list))
	if len(missing) == 0 {
		return nil
	}
	return again(ctx, func() error {
		if err := apt(ctx, "update"); err != nil {
			return err
		}
		return apt(ctx, append([]string{"install", "-y", "--no-install-recommends"}, missing...)...)
	})
}

// again calls f, which runs apt-get, until it succeeds or has failed for five minutes. Another
// apt-get may hold a lock, such as that of a fresh machine, and a server may not answer.
func again(ctx context.Context, f func() error) error {
	for began := time.Now(); ; {
		err := f()
		if err == nil || time.Since(began) > 5*time.Minute {
			return err
		}
		fmt.Fprintln(os.Stderr, "vm: trying again:", err)
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return err
		}
	}
}

// missingOf returns the names that list, lines of "NAME STATUS", does not call
// installed.
func missingOf(names []string, list string) []string {
	installed := strings.Split(list, "\n")
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.Contains(installed, name+" installed")
	})
}

// apt runs apt-get as root. If it fails, the error shows its output.
func apt(ctx context.Context, args ...string) error {
	command := append([]string{"apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"}, args...)
	command = append([]string{"env", "DEBIAN_FRONTEND=noninteractive"}, command...)
	if os.Geteuid() != 0 {
		command = append([]string{"sudo", "-n"}, command...)
	}
	fmt.Fprintln(os.Stderr, "vm:", strings.Join(command, " "))
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
	}
	return nil
}

// kernelPackages finds the packages with the kernel and its modules, each as
// "NAME=VERSION".
func (s aptSource) kernelPackages(ctx context.Context) ([]string, error) {
	var failures []error
	for _, kernel := range s.arch.kernels {
		found, err := follow(kernel, func(name string) (string, error) { return s.show(ctx, name) })
		if err == nil {
			return found, nil
		}
		failures = append(failures, err)
	}
	return nil, fmt.Errorf("no kernel for %s: is this a Debian? %w", s.arch.name, errors.Join(failures...))
}

// follow returns the packages with kernel files that a package depends on, itself
// or through further packages, as sorted "NAME=VERSION". The names hold the
// kernel's version, which moves with each security update. So follow reads each
// from the field Depends of the one before. show returns the output of "apt-cache
// show".
func follow(kernel string, show func(name string) (string, error)) ([]string, error) {
	found := map[string]bool{}
	seen := map[string]bool{kernel: true}
	for queue := []string{kernel}; len(queue) > 0; queue = queue[1:] {
		text, err := show(queue[0])
		if err != nil {
			return nil, err
		}
		about := fields(text)
		if queue[0] != kernel {
			found[queue[0]+"="+about["Version"]] = true
		}
		for _, dependency := range strings.Split(about["Depends"], ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(dependency), " ")
			if holdsKernel(name) && !seen[name] {
				seen[name] = true
				queue = append(queue, name)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the package %s depends on no kernel", kernel)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// holdsKernel reports whether a package has a kernel or its modules; linux-base
// and linux-firmware do not.
func holdsKernel(name string) bool {
	return strings.HasPrefix(name, "linux-image-") || strings.HasPrefix(name, "linux-modules-")
}

// fields returns the fields of a package's description. It skips lines that begin
// with a blank: they belong to a field of several lines.
func fields(text string) map[string]string {
	out := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && !strings.HasPrefix(name, " ") {
			out[name] = strings.TrimSpace(value)
		}
	}
	return out
}

// output runs a command and returns its output.
func output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := outputOf(exec.CommandContext(ctx, name, args...))
	return string(out), err
}

// outputOf runs cmd. Its error holds cmd's standard error.
func outputOf(cmd *exec.Cmd) ([]byte, error) {
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return out, err
}
