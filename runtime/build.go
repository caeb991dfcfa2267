package runtime

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

const module = "github.com/gopgas/gopgas"

// A buildCard tells builds of programs apart.
type buildCard struct {
	Program string // the name of its file
	ID      string `json:",omitempty"` // the content part of Go's build ID; "": unknown
	Gopgas  string `json:",omitempty"` // its version; "": unknown
}

// thisBuild returns the card of this program.
func thisBuild() buildCard {
	path, _ := os.Executable()
	card := buildCard{Program: filepath.Base(path), ID: buildID("/proc/self/exe")}
	if info, ok := debug.ReadBuildInfo(); ok {
		card.Gopgas = versionIn(info)
	}
	return card
}

// buildID returns "" for a file without a build ID. The go command writes the ID into an ELF
// note: lengths of name and ID, a type, the name "Go\0\0", and the ID. Its last part depends on
// the content of the program alone.
func buildID(path string) string {
	const lengthAt, idAt = 4, 16
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	section := f.Section(".note.go.buildid")
	if section == nil {
		return ""
	}
	note, err := section.Data()
	if err != nil || len(note) < idAt {
		return ""
	}
	n := binary.LittleEndian.Uint32(note[lengthAt:])
	if uint64(n) > uint64(len(note)-idAt) {
		return ""
	}
	id := string(note[idAt : idAt+n])
	return id[strings.LastIndexByte(id, '/')+1:]
}

// differentBuilds returns a line that names two ranks with different builds of one program,
// "" if there are none. Programs of different names may differ, as those of server and clients.
func differentBuilds(cards []*teamCard) string {
	first := map[string]int{} // rank by program
	for rank, card := range cards {
		mine := card.Site.Build
		if mine.ID == "" {
			continue
		}
		other, met := first[mine.Program]
		if !met {
			first[mine.Program] = rank
			continue
		}
		if site := cards[other].Site; site.Build.ID != mine.ID {
			return fmt.Sprintf("gopgas: rank %d on %s and rank %d on %s run different builds of %s; copy one build to all hosts, or have grun do so (grun --stage)",
				other, site.Name, rank, card.Site.Name, mine.Program)
		}
	}
	return ""
}

// versionIn returns the version of gopgas in a program, "" if the go command did not record one.
func versionIn(info *debug.BuildInfo) string {
	found := &info.Main
	for _, dep := range info.Deps {
		if dep.Path == module {
			found = dep
		}
	}
	if found.Replace != nil {
		found = found.Replace
	}
	if found.Path != module || found.Version == "(devel)" {
		return ""
	}
	return found.Version
}

// sameVersion returns an error if two ranks have programs with different versions of gopgas.
// They might choose different algorithms for one call.
func sameVersion(cards []*teamCard) error {
	known := -1
	for rank, card := range cards {
		switch {
		case card.Site.Build.Gopgas == "":
		case known < 0:
			known = rank
		case card.Site.Build.Gopgas != cards[known].Site.Build.Gopgas:
			return fmt.Errorf("%w: gopgas %s at rank %d on %s, %s at rank %d on %s; build the programs of all hosts anew with one version, or give grun --stage",
				ErrMismatch, cards[known].Site.Build.Gopgas, known, cards[known].Site.Name, card.Site.Build.Gopgas, rank, card.Site.Name)
		}
	}
	return nil
}
