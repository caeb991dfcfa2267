package tuned

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// table is a table of this machine.
func table(t testing.TB) *Table {
	here, err := Here()
	require.NoError(t, err)
	return &Table{here, []Rule{
		{Collective: "all-reduce", Path: "tcp", Members: 4, UpTo: 4096, Algorithm: "linear", Micros: 1.5, Instead: "ring", InsteadMicros: 2},
		{Collective: "all-reduce", Path: "tcp", Members: 4, UpTo: 65536, Algorithm: "ring", Micros: 20},
		{Collective: "all-reduce", Path: "tcp", Members: 4, Algorithm: "rabenseifner", Micros: 300},
		{Collective: "all-reduce", Path: "tcp", Members: 8, Algorithm: "ring", Micros: 900},
		{Collective: "all-reduce", Path: Mapped, Members: 4, Algorithm: "board", Micros: 3},
		{Collective: "scan", Path: "tcp", Members: 2, Algorithm: "linear", Micros: 3},
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

func TestForReturnsTheRulesOfTheNextLargerMeasuredTeam(t *testing.T) {
	algorithms := func(path string, n int) (names []string) {
		for _, r := range table(t).For(path, n) {
			names = append(names, r.Algorithm)
		}
		return names
	}
	require.Equal(t, []string{"linear", "ring", "rabenseifner", "linear"}, algorithms("tcp", 2))
	require.Equal(t, []string{"linear", "ring", "rabenseifner"}, algorithms("tcp", 3))
	require.Equal(t, []string{"ring"}, algorithms("tcp", 5))
	require.Empty(t, algorithms("tcp", 9), "nobody measured so many")
	require.Equal(t, []string{"board"}, algorithms(Mapped, 4))
	require.Empty(t, algorithms("shm", 2))
}

// TestDamagedTablesAreRefused changes a table's text, each time in one way.
func TestDamagedTablesAreRefused(t *testing.T) {
	data, err := table(t).Encode()
	require.NoError(t, err)
	for name, change := range map[string][2]string{
		"cut":                  {"]\n}", ""},
		"something behind":     {"]\n}", "]} {}"},
		"another version":      {`"version": 1`, `"version": 2`},
		"an unknown field":     {`"version": 1`, `"version": 1, "color": "red"`},
		"a wrong type":         {`"members": 2`, `"members": "two"`},
		"one member":           {`"members": 2`, `"members": 1`},
		"too many members":     {`"members": 2`, `"members": 99999999`},
		"a negative size":      {`"upTo": 4096`, `"upTo": -1`},
		"sizes out of order":   {`"upTo": 4096`, `"upTo": 65536`},
		"sizes without a rule": {`"members": 8`, `"members": 8, "upTo": 5`},
		"a negative time":      {`"micros": 1.5`, `"micros": -1.5`},
		"no name":              {`"algorithm": "linear"`, `"algorithm": ""`},
		"a very long name":     {`"algorithm": "linear"`, `"algorithm": "` + strings.Repeat("x", 65) + `"`},
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
	bad.Rules[0].Members = 0
	require.ErrorIs(t, bad.Save(path), ErrDamaged)
	bad.Rules = make([]Rule, maxRules+1)
	require.ErrorIs(t, bad.Save(path), ErrDamaged)
	require.NoFileExists(t, path)
}

func TestLoadRefusesTheTableOfAnotherMachine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "of", "this", "user", "table.json")
	want := table(t)
	require.NoError(t, want.Save(path))
	got, mark, err := Load(path)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Len(t, mark, 8)

	want.Rules[0].Micros++
	require.NoError(t, want.Save(path))
	_, other, err := Load(path)
	require.NoError(t, err)
	require.NotEqual(t, mark, other)

	want.Machine.Cores++
	require.NoError(t, want.Save(path))
	_, _, err = Load(path)
	require.ErrorIs(t, err, ErrForeign)
	require.ErrorContains(t, err, path)
	_, _, err = Load(path + ".absent")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestReadersFindAWholeTableDuringASave saves and loads at the same time.
func TestReadersFindAWholeTableDuringASave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.json")
	long, short := table(t), table(t)
	short.Rules = short.Rules[3:]
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
		_, _, err := Load(path)
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
	f.Add([]byte(`{"version":1,"machine":{"cpu":"","cores":0,"arch":""},"rules":null}`))
	f.Add([]byte(`{"version":1,"rules":[{"collective":"a","path":"b","members":2,"algorithm":"c","micros":1e308}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
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
		require.Len(t, twice.Rules, len(decoded.Rules))
		for n := range 10 {
			require.Equal(t, decoded.For("b", n), twice.For("b", n))
		}
	})
}
