//go:build linux

package hosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadListTakesAllSpellings(t *testing.T) {
	for text, want := range map[string][]Host{
		"a":                  {{Name: "a", Slots: 1}},
		`SITE\me@a`:          {{Name: "a", User: `SITE\me`, Slots: 1}},
		"a:2,b":              {{Name: "a", Slots: 2}, {Name: "b", Slots: 1}},
		" a:2 , b ,":         {{Name: "a", Slots: 2}, {Name: "b", Slots: 1}},
		"a,b,a:3":            {{Name: "a", Slots: 4}, {Name: "b", Slots: 1}},
		"me@a:2,a":           {{Name: "a", User: "me", Slots: 2}, {Name: "a", Slots: 1}},
		"[fe80::1]:2,[::1]":  {{Name: "fe80::1", Slots: 2}, {Name: "::1", Slots: 1}},
		"me@[fe80::1%eth0]":  {{Name: "fe80::1%eth0", User: "me", Slots: 1}},
		"fd00::7":            {{Name: "fd00::7", Slots: 1}},
		"10.0.0.1:4":         {{Name: "10.0.0.1", Slots: 4}},
		"eco[1-2]:3,b":       {{Name: "eco1", Slots: 3}, {Name: "eco2", Slots: 3}, {Name: "b", Slots: 1}},
		"eco[08-10,12].site": {{Name: "eco08.site", Slots: 1}, {Name: "eco09.site", Slots: 1}, {Name: "eco10.site", Slots: 1}, {Name: "eco12.site", Slots: 1}},
		"r[1-2]n[1-2]":       {{Name: "r1n1", Slots: 1}, {Name: "r1n2", Slots: 1}, {Name: "r2n1", Slots: 1}, {Name: "r2n2", Slots: 1}},
	} {
		list, err := ReadList(text)
		require.NoError(t, err, text)
		require.Equal(t, want, list, text)
	}
}

func TestReadListRefusesMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"": "names no host", ",": "names no host", "a:": "slots", "a:0": "slots", "a:x": "slots", "a:-1": "slots", "a:2:3": "slots",
		"-oProxyCommand=x": "is no name", "$(x)@a": "user", "x;y@a": "user", "a\x1b": "is no name", "@a": "user", "-x@a": "user", "a@": "no name", "a b": "is no name", "a;b": "is no name", "$(x)": "is no name",
		"eco[1-": "without its ]", "eco[2-1]": "range", "eco[x]": "range", "eco[]": "range", "eco[1-99999999]": "range",
		"eco[1-9999][1-9999]": "more than", "[zz::1]:2": "no IPv6", "[::1]x": "want host or host:slots",
	} {
		_, err := ReadList(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestParseTakesHostfilesOfOtherLaunchers(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []Host
	}{
		"Open MPI": {"# nodes\n\na slots=2 max_slots=4\nb slots = 3\nme@c\n", []Host{
			{Name: "a", Slots: 2, Max: 4}, {Name: "b", Slots: 3}, {Name: "c", User: "me", Slots: 1}}},
		"Hydra":    {"a:2\r\nb:3 # two\r\nc user=you", []Host{{Name: "a", Slots: 2}, {Name: "b", Slots: 3}, {Name: "c", User: "you", Slots: 1}}},
		"repeated": {"a\na\nb\na", []Host{{Name: "a", Slots: 3}, {Name: "b", Slots: 1}}},
		"bounds":   {"a max=2\nb max=1\na slots=3\nb slots=2 max=4\nb max=1\n", []Host{{Name: "a", Slots: 4}, {Name: "b", Slots: 4, Max: 6}}},
		"Slurm":    {"eco[1-2,4] slots=2\n", []Host{{Name: "eco1", Slots: 2}, {Name: "eco2", Slots: 2}, {Name: "eco4", Slots: 2}}},
		"IPv6":     {"[fd00::1]:2\nfd00::2 slots=2\n", []Host{{Name: "fd00::1", Slots: 2}, {Name: "fd00::2", Slots: 2}}},
	} {
		list, err := Parse("hosts", c.text)
		require.NoError(t, err, name)
		require.Equal(t, c.want, list, name)
	}
}

func TestParseNamesFileAndLineOfAMistake(t *testing.T) {
	for text, want := range map[string]string{
		"a\n\nb slots=x":        `my/hosts:3: "x" slots`,
		"a slot=2":              `my/hosts:1: "slot=2" behind host a; write slots=N`,
		"a 2":                   `my/hosts:1: "2" behind host a`,
		"a slots=4 max_slots=2": "my/hosts:1: host a: max_slots=2 is less than its 4 slots",
		"a user=-x":             `my/hosts:1: user "-x"`,
		"a user=$(x)":           `my/hosts:1: user "$(x)"`,
		"# nothing\n":           "my/hosts: names no host",
	} {
		_, err := Parse("my/hosts", text)
		require.ErrorContains(t, err, want)
	}
}

func TestReadFileNamesAMissingFile(t *testing.T) {
	_, err := ReadFile(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestPlaceFillsSlotsInOrder(t *testing.T) {
	list := []Host{{Name: "a", Slots: 2}, {Name: "b", Slots: 1}, {Name: "c", Slots: 3, Max: 4}}
	for _, c := range []struct {
		ranks int
		by    By
		over  bool
		want  string
	}{
		{6, BySlot, false, "aabccc"},
		{4, BySlot, false, "aabc"},
		{6, ByNode, false, "abcacc"},
		{8, BySlot, true, "aabcccaa"},
		{10, BySlot, true, "aabcccaabc"},
		{12, BySlot, true, "aabcccaabcaa"},
		{7, ByNode, true, "abcacca"},
		{0, BySlot, false, ""},
	} {
		places, err := Place(list, c.ranks, c.by, c.over)
		require.NoError(t, err)
		got := ""
		for _, i := range places {
			got += list[i].Name
		}
		require.Equal(t, c.want, got)
	}
}

func TestPlaceRefusesMoreRanksThanSlots(t *testing.T) {
	_, err := Place([]Host{{Name: "a", Slots: 2}}, 3, BySlot, false)
	require.ErrorContains(t, err, "--oversubscribe")
	_, err = Place([]Host{{Name: "a", Slots: 2, Max: 3}}, 4, BySlot, true)
	require.ErrorContains(t, err, "at most 3 (max_slots)")
}

func TestThisHostIsKnownByItsNames(t *testing.T) {
	name, err := os.Hostname()
	require.NoError(t, err)
	for _, this := range []string{"localhost", "127.0.0.1", "::1", name} {
		require.True(t, Host{Name: this}.IsThis(), this)
	}
	require.False(t, Host{Name: "localhost", User: "me"}.IsThis(), "another user's processes need ssh")
	require.False(t, Host{Name: "another-host.example"}.IsThis())
}

func FuzzHosts(f *testing.F) {
	for _, seed := range []string{"a:2,b", "eco[1-2,04]x slots=2\n# c\n[fe80::1]:2 user=me", "r[1-2]n[1-3]:2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse("hosts", text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NotEmpty(t, list)
		seen := map[string]bool{}
		for _, h := range list {
			require.NotEmpty(t, h.Name)
			require.Positive(t, h.Slots)
			require.False(t, strings.HasPrefix(h.String(), "-"), "ssh would take it for an option")
			require.False(t, seen[h.String()])
			seen[h.String()] = true
		}
		_, err = Place(list, min(Slots(list), 1000), ByNode, false)
		if err != nil {
			require.ErrorContains(t, err, "max_slots")
		}
	})
}
