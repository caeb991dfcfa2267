package tuned

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
)

// These are the settings of the table of the tests.
var (
	onTCP     = Setting{Path: "tcp", Hosts: "4", PerCore: 2}
	onBoard   = Setting{Path: Mapped, Hosts: "4", PerCore: 2, BoundTo: 1}
	onThree   = Setting{Path: "shm+tcp", Hosts: "2+1+3", PerCore: 1}
	onNothing = Setting{Path: "tcp", Hosts: "2", PerCore: 1}
)

// table is a table of this machine.
func table(t testing.TB) *Table {
	here, err := Here()
	require.NoError(t, err)
	return &Table{[]Machine{here}, []Measured{
		{onTCP, []Rule{
			{Collective: "all-reduce", From: 8, UpTo: 4096, Algorithm: "linear", Micros: 1.5, Instead: "ring", InsteadMicros: 2},
			{Collective: "all-reduce", From: 65536, UpTo: 65536, Algorithm: "ring", Micros: 20},
			{Collective: "scan", From: 8, UpTo: 4096, Algorithm: "linear", Micros: 3},
		}},
		{onBoard, []Rule{{Collective: "all-reduce", From: 8, UpTo: 8, Algorithm: "board", Micros: 3}}},
		{onThree, []Rule{{Collective: "scan", From: 0, UpTo: 4096, Algorithm: "linear", Micros: 15, Instead: "two-level", InsteadMicros: 46}}},
		{onNothing, []Rule{}},
	}}
}

func TestLoadReturnsTheSavedTable(t *testing.T) {
	want := table(t)
	data, err := want.Encode()
	require.NoError(t, err)
	got, err := Decode(data)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestForReturnsTheRulesOfThatSettingOnly(t *testing.T) {
	all := table(t)
	for _, m := range all.Settings {
		rules, measured := all.For(m.Setting)
		require.True(t, measured)
		require.Equal(t, m.Rules, rules)
		for _, other := range []Setting{
			{m.Path + "x", m.Hosts, m.PerCore, m.BoundTo}, {m.Path, m.Hosts + "+1", m.PerCore, m.BoundTo},
			{m.Path, m.Hosts, m.PerCore + 1, m.BoundTo}, {m.Path, m.Hosts, m.PerCore, m.BoundTo + 1},
		} {
			rules, measured := all.For(other)
			require.False(t, measured, "%v", other)
			require.Empty(t, rules)
		}
	}
}

func TestKeepAddsWhatWasNotMeasuredAgain(t *testing.T) {
	now := table(t)
	again := Rule{Collective: "all-reduce", From: 8, UpTo: 8, Algorithm: "chunked-ring"}
	now.Settings = []Measured{{onTCP, []Rule{again}}}
	now.Keep(table(t), func(c string) bool { return c == "all-reduce" })
	want := table(t).Settings
	want[0].Rules = []Rule{again, want[0].Rules[2]}
	require.Equal(t, want, now.Settings)
	_, err := now.Encode()
	require.NoError(t, err)

	foreign := table(t)
	foreign.Machines[0].Cores++
	now.Settings = nil
	now.Keep(foreign, func(string) bool { return true })
	require.Empty(t, now.Settings)
}

// TestKeepLeavesOutTheOldestSettings measures another setting each time.
func TestKeepLeavesOutTheOldestSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.json")
	var kept *Table
	for round := range 40 {
		now := table(t)
		now.Settings = []Measured{{Setting{Path: "tcp", Hosts: strconv.Itoa(2 + round), PerCore: 1}, nil}}
		for size := range 60 {
			now.Settings[0].Rules = append(now.Settings[0].Rules, Rule{Collective: "all-reduce", From: size, UpTo: size,
				Algorithm: "recursive-doubling", Micros: rand.Float64(), Instead: "reduce-broadcast", InsteadMicros: rand.Float64()})
		}
		if kept != nil {
			now.Keep(kept, func(string) bool { return true })
			require.Equal(t, kept.Settings[0], now.Settings[1])
		}
		require.NoError(t, now.Save(path), "round %d", round)
		_, err := Pack(path, path)
		require.NoError(t, err, "round %d", round)
		kept = now
	}
	require.Less(t, len(kept.Settings), 40)
}

func TestSettingOfDescribesATeam(t *testing.T) {
	for _, c := range []struct {
		hosts  []int
		layout string
		text   string
	}{
		{nil, "6", "6 ranks, tcp, 2 ranks for each core, bound to a core each"},
		{[]int{0, 0, 0, 0, 0, 0}, "6", "6 ranks, tcp, 2 ranks for each core, bound to a core each"},
		{[]int{0, 0, 2, 3, 3, 3}, "2+1+3", "6 ranks on 3 hosts (2+1+3), tcp, 2 ranks for each core, bound to a core each"},
		{[]int{0, 1, 0, 1, 4, 0}, "1+1+1@0+1@1+1+1@0", "6 ranks on 3 hosts (1+1+1@0+1@1+1+1@0), tcp, 2 ranks for each core, bound to a core each"},
	} {
		of := &team.Team{Members: make([]int, 6), Hosts: c.hosts, Path: "tcp", PerCore: 2, BoundTo: 1}
		s, ok := SettingOf(of)
		require.True(t, ok)
		require.Equal(t, c.layout, s.Hosts)
		require.Equal(t, 6, s.Members())
		require.Equal(t, c.text, s.String())
	}
	_, ok := SettingOf(&team.Team{Members: make([]int, 6), PerCore: 1})
	require.False(t, ok, "members have different providers")
	_, ok = SettingOf(&team.Team{Members: make([]int, 6), Path: "tcp", PerCore: 1, BoundTo: -1})
	require.False(t, ok, "members have different bindings")
	for _, bad := range []string{"", "+", "0", "01", "2+", "-1", "1+1@1", "1+1@-1", "1+1@00", "1048577", "1048576+1", "x"} {
		_, _, ok := members(bad)
		require.False(t, ok, bad)
	}
}

func TestRanksLoadThePackedContentOfAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "with spaces", "table.json")
	require.NoError(t, table(t).Save(path))
	want, mark, err := Load(path, "")
	require.NoError(t, err)
	packed, err := Pack(path, path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))

	got, again, err := Load(path, packed)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, mark, again)
	_, _, err = Load(path+".other", packed)
	require.ErrorIs(t, err, os.ErrNotExist, "the user has named another file")
	for _, bad := range []string{"!!! " + path, packed[:10] + " " + path} {
		_, _, err = Load(path, bad)
		require.ErrorIs(t, err, ErrDamaged)
	}
	_, err = Pack(path, path)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestHostsPathDoesNotDependOnTheOrderOfHosts(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	one, err := HostsPath([]string{"a", "b", "a"})
	require.NoError(t, err)
	two, err := HostsPath([]string{"b", "a"})
	require.NoError(t, err)
	other, err := HostsPath([]string{"a", "c"})
	require.NoError(t, err)
	require.Equal(t, one, two)
	require.NotEqual(t, one, other)
}

// TestDamagedTablesAreRefused changes a table's text, each time in one way.
func TestDamagedTablesAreRefused(t *testing.T) {
	data, err := table(t).Encode()
	require.NoError(t, err)
	for name, change := range map[string][2]string{
		"cut":                {"]\n}", ""},
		"something behind":   {"]\n}", "]} {}"},
		"the version before": {`"version": 2`, `"version": 1`},
		"another version":    {`"version": 2`, `"version": 3`},
		"two versions":       {`"version": 2`, `"version": 2, "Version": 1`},
		"an unknown field":   {`"version": 2`, `"version": 2, "color": "red"`},
		"a wrong type":       {`"hosts": "2"`, `"hosts": 2`},
		"one member":         {`"hosts": "2"`, `"hosts": "1"`},
		"too many members":   {`"hosts": "2"`, `"hosts": "99999999"`},
		"a setting twice":    {`"boundTo": 1`, `"boundTo": 0, "path": "tcp"`},
		"a negative binding": {`"boundTo": 1`, `"boundTo": -1`},
		"no core":            {`"perCore": 1`, `"perCore": 0`},
		"a negative size":    {`"from": 8`, `"from": -1`},
		"an empty range":     {`"upTo": 4096`, `"upTo": 7`},
		"sizes out of order": {`"upTo": 4096`, `"upTo": 65536`},
		"a negative time":    {`"micros": 1.5`, `"micros": -1.5`},
		"no name":            {`"algorithm": "linear"`, `"algorithm": ""`},
		"a very long name":   {`"algorithm": "linear"`, `"algorithm": "` + strings.Repeat("x", 65) + `"`},
	} {
		damaged := strings.Replace(string(data), change[0], change[1], 1)
		require.NotEqual(t, string(data), damaged, name)
		_, err := Decode([]byte(damaged))
		require.ErrorIs(t, err, ErrDamaged, name)
		require.ErrorContains(t, err, "grun tune", name)
	}
	_, err = Decode(nil)
	require.ErrorIs(t, err, ErrDamaged)
	_, err = Decode([]byte(strings.Repeat(" ", maxBytes+1)))
	require.ErrorIs(t, err, ErrDamaged)
}

func TestEncodeRefusesATableThatDecodeRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.json")
	bad := table(t)
	bad.Settings[0].PerCore = 0
	require.ErrorIs(t, bad.Save(path), ErrDamaged)
	bad.Settings = make([]Measured, maxSettings+1)
	require.ErrorIs(t, bad.Save(path), ErrDamaged)
	require.NoFileExists(t, path)
}

func TestLoadRefusesTheTableOfAnotherMachine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "of", "this", "user", "table.json")
	want := table(t)
	require.NoError(t, want.Save(path))
	got, mark, err := Load(path, "")
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Len(t, mark, 8)

	want.Settings[0].Rules[0].Micros++
	require.NoError(t, want.Save(path))
	_, other, err := Load(path, "")
	require.NoError(t, err)
	require.NotEqual(t, mark, other)

	want.Machines[0].Cores++
	require.NoError(t, want.Save(path))
	_, _, err = Load(path, "")
	require.ErrorIs(t, err, ErrForeign)
	require.ErrorContains(t, err, path)
	_, _, err = Load(path+".absent", "")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestReadersFindAWholeTableDuringASave saves and loads at the same time.
func TestReadersFindAWholeTableDuringASave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.json")
	long, short := table(t), table(t)
	short.Settings = short.Settings[3:]
	require.NoError(t, long.Save(path))
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				if err := []*Table{long, short}[i%2].Save(path); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for range 200 {
		_, _, err := Load(path, "")
		require.NoError(t, err)
	}
	close(stop)
	writer.Wait()
	left, err := filepath.Glob(path + ".*")
	require.NoError(t, err)
	require.Empty(t, left, "temporary files")
}

func TestParseMachineReadsTheKernelsDescription(t *testing.T) {
	m, err := parseMachine(strings.NewReader("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n\nprocessor\t: 1\nmodel name\t: Some CPU @ 3 GHz\n"))
	require.NoError(t, err)
	require.Equal(t, "Some CPU @ 3 GHz", m.CPU)
	require.Equal(t, 2, m.Cores)
	require.Contains(t, m.String(), "Some CPU @ 3 GHz, 2 cores")
	other := m
	other.Cores = 4
	one, err := DefaultPath(m)
	require.NoError(t, err)
	two, err := DefaultPath(other)
	require.NoError(t, err)
	require.NotEqual(t, one, two)
}

// FuzzDecode checks that a decoded table can be encoded, and is the same then.
func FuzzDecode(f *testing.F) {
	data, err := table(f).Encode()
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"version":2,"machines":[{"cpu":"","cores":0,"arch":""}],"settings":null}`))
	f.Add([]byte(`{"version":2,"settings":[{"path":"b","hosts":"1+1@0","perCore":1,"rules":[{"collective":"a","upTo":2,"algorithm":"c","micros":1e308}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if packed, _, err := unpack("file", string(data)+" file"); err == nil {
			data = packed
		}
		decoded, err := Decode(data)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		again, err := decoded.Encode()
		if len(data) > maxBytes/8 && err != nil {
			return // blanks and escapes made it too long
		}
		require.NoError(t, err)
		twice, err := Decode(again)
		require.NoError(t, err)
		require.Len(t, twice.Settings, len(decoded.Settings))
		for _, m := range decoded.Settings {
			rules, measured := twice.For(m.Setting)
			require.True(t, measured)
			require.Equal(t, m.Rules, rules)
			require.GreaterOrEqual(t, m.Members(), 2)
		}
	})
}
