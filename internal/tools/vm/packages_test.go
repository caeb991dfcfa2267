//go:build linux

package main

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMissingOfListsPackagesThatAreNotWhollyInstalled(t *testing.T) {
	list := "gcc installed\nstrace config-files\nzstd-doc installed\n"
	require.Equal(t, []string{"strace", "zstd"}, missingOf([]string{"gcc", "strace", "zstd"}, list))
	require.Empty(t, missingOf([]string{"gcc"}, list))
}

// shelf stands for apt-cache.
func shelf(packages map[string]string) func(string) (string, error) {
	return func(name string) (string, error) {
		text, ok := packages[name]
		if !ok {
			return "", errors.New("no packages found")
		}
		return text, nil
	}
}

func TestFollowFindsTheKernelsPackageByDependencies(t *testing.T) {
	show := shelf(map[string]string{
		"linux-image-amd64":          "Package: linux-image-amd64\nVersion: 6.1.192-2\nDepends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\nDescription: Linux\n Depends: nothing\n",
		"linux-image-6.1.0-56-amd64": "Version: 6.1.192-2\nDepends: kmod, linux-base (>= 4.3~), initramfs-tools | linux-initramfs-tool\n",
	})
	got, err := follow("linux-image-amd64", show)
	require.NoError(t, err)
	require.Equal(t, []string{"linux-image-6.1.0-56-amd64=6.1.192-2"}, got)
}

func TestModulesMayBeInPackagesOfTheirOwn(t *testing.T) {
	show := shelf(map[string]string{
		"linux-image-generic":                 "Version: 6.8.0.9\nDepends: linux-image-6.8.0-9-generic, linux-modules-extra-6.8.0-9-generic, linux-firmware\n",
		"linux-image-6.8.0-9-generic":         "Version: 6.8.0-9.1\nDepends: kmod, linux-modules-6.8.0-9-generic\n",
		"linux-modules-6.8.0-9-generic":       "Version: 6.8.0-9.2\n",
		"linux-modules-extra-6.8.0-9-generic": "Version: 6.8.0-9.3\nDepends: linux-modules-6.8.0-9-generic\n",
	})
	got, err := follow("linux-image-generic", show)
	require.NoError(t, err)
	require.Equal(t, []string{
		"linux-image-6.8.0-9-generic=6.8.0-9.1",
		"linux-modules-6.8.0-9-generic=6.8.0-9.2",
		"linux-modules-extra-6.8.0-9-generic=6.8.0-9.3",
	}, got)
}

func TestKernelThatAptDoesNotKnowReturnsAnError(t *testing.T) {
	_, err := follow("linux-image-amd64", shelf(nil))
	require.Error(t, err)
	_, err = follow("linux-image-amd64", shelf(map[string]string{"linux-image-amd64": "Depends: linux-base\n"}))
	require.ErrorContains(t, err, "depends on no kernel")
	_, err = follow("a", shelf(map[string]string{"a": "Depends: linux-image-gone\n"}))
	require.Error(t, err)
}

func TestErrorsOfOutputHoldTheProgramsComplaint(t *testing.T) {
	_, err := outputOf(exec.Command("sh", "-c", "echo the reason >&2; exit 3"))
	require.ErrorContains(t, err, "sh -c")
	require.ErrorContains(t, err, "exit status 3: the reason")
}
