package runtime

import (
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func built(builds ...buildCard) (cards []*teamCard) {
	for i, b := range builds {
		cards = append(cards, &teamCard{Site: &siteCard{Name: "host" + string(rune('a'+i)), Build: b}})
	}
	return cards
}

func TestBuildIDIsThatOfTheGoCommand(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	out, err := exec.Command("go", "tool", "buildid", program).Output()
	require.NoError(t, err)
	id := buildID(program)
	require.NotEmpty(t, id)
	require.True(t, strings.HasSuffix(strings.TrimSpace(string(out)), "/"+id), "%s", out)
	require.Empty(t, buildID("build_test.go"))
	require.Empty(t, buildID("/bin/sh"))
}

func TestBuildsOfOneProgramThatDifferAreNamed(t *testing.T) {
	server, old, fresh := buildCard{Program: "server", ID: "s"}, buildCard{Program: "worker", ID: "old"}, buildCard{Program: "worker", ID: "new"}
	require.Empty(t, differentBuilds(built(server, old, old, buildCard{Program: "worker"})))
	require.Contains(t, differentBuilds(built(server, old, fresh)),
		"gopgas: rank 1 on hostb and rank 2 on hostc run different builds of worker; ")
}

func TestVersionIsThatOfGopgasInTheProgram(t *testing.T) {
	ours, theirs := debug.Module{Path: module, Version: "v1.2.3"}, debug.Module{Path: "example.org/user", Version: "v7.0.0"}
	fork := debug.Module{Path: module, Version: "v1.2.3", Replace: &debug.Module{Path: "../gopgas", Version: "(devel)"}}
	for _, c := range []struct {
		info debug.BuildInfo
		want string
	}{
		{debug.BuildInfo{Main: ours}, "v1.2.3"},
		{debug.BuildInfo{Main: theirs, Deps: []*debug.Module{{Path: "example.org/x", Version: "v2.0.0"}, &ours}}, "v1.2.3"},
		{debug.BuildInfo{Main: theirs, Deps: []*debug.Module{&fork}}, ""},
		{debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}}, ""},
		{debug.BuildInfo{Main: theirs}, ""},
	} {
		require.Equal(t, c.want, versionIn(&c.info))
	}
}

func TestRanksWithDifferentVersionsOfGopgasReturnErrMismatch(t *testing.T) {
	cards := func(versions ...string) []*teamCard {
		var builds []buildCard
		for _, v := range versions {
			builds = append(builds, buildCard{Gopgas: v})
		}
		return built(builds...)
	}
	require.NoError(t, sameVersion(cards("v1.2.3", "v1.2.3")))
	require.NoError(t, sameVersion(cards("", "v1.2.3", "")), "an unknown version proves nothing")
	err := sameVersion(cards("", "v1.2.3", "", "v1.2.4"))
	require.ErrorIs(t, err, ErrMismatch)
	require.ErrorContains(t, err, "gopgas v1.2.3 at rank 1 on hostb, v1.2.4 at rank 3 on hostd; build")
}
