package tuned

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gopgas/gopgas/internal/team"
)

// Mapped is the path of members that map each other's memory.
const Mapped = "mapped"

// A Setting says which members make a call and how they reach each other. Measurements
// hold for teams of the same setting only.
type Setting struct {
	// Path is the way that members reach each other: Mapped, or the providers of their
	// messages in order of preference, such as "shm+tcp".
	Path string `json:"path"`
	// Hosts has the number of members on each host, such as "2+1+3". It counts members that
	// follow one another: "1+1+1@0" has members 0 and 2 on one host.
	Hosts string `json:"hosts"`
	// PerCore is the most members for a core of their host, rounded up.
	PerCore int `json:"perCore"`
	// BoundTo is the number of cores to which each member is bound, 0: all of its host.
	BoundTo int `json:"boundTo,omitempty"`
}

// SettingOf returns the setting of a team. It returns false if members have different
// providers or bindings, or if their places are too many to write: a table has no such
// teams.
func SettingOf(t *team.Team) (Setting, bool) {
	s := Setting{Path: t.Path, Hosts: layoutOf(t.Hosts, len(t.Members)), PerCore: t.PerCore, BoundTo: t.BoundTo}
	if t.Mapped {
		s.Path = Mapped
	}
	return s, s.flaw() == ""
}

// layoutOf writes the hosts of n members; nil hosts are one.
func layoutOf(hosts []int, n int) string {
	if hosts == nil {
		return strconv.Itoa(n)
	}
	seen := map[int]int{}
	var runs []string
	for i := 0; i < n; {
		end := i + 1
		for end < n && hosts[end] == hosts[i] {
			end++
		}
		run := strconv.Itoa(end - i)
		if number, before := seen[hosts[i]]; before {
			run += "@" + strconv.Itoa(number)
		} else {
			seen[hosts[i]] = len(seen)
		}
		runs, i = append(runs, run), end
	}
	return strings.Join(runs, "+")
}

// members returns the number of members in a layout and the number of their hosts. It
// returns false if the text is no layout.
func members(layout string) (n, hosts int, ok bool) {
	for run := range strings.SplitSeq(layout, "+") {
		length, at, again := strings.Cut(run, "@")
		k, err := strconv.Atoi(length)
		if err != nil || k < 1 || k > maxMembers || strconv.Itoa(k) != length {
			return 0, 0, false
		}
		if again {
			host, err := strconv.Atoi(at)
			if err != nil || host < 0 || host >= hosts || strconv.Itoa(host) != at {
				return 0, 0, false
			}
		} else {
			hosts++
		}
		if n += k; n > maxMembers {
			return 0, 0, false
		}
	}
	return n, hosts, true
}

// Members returns the number of members.
func (s Setting) Members() int {
	n, _, _ := members(s.Hosts)
	return n
}

// String describes a setting in a few words.
func (s Setting) String() string {
	n, hosts, _ := members(s.Hosts)
	about := fmt.Sprintf("%d ranks", n)
	if hosts > 1 {
		about += fmt.Sprintf(" on %d hosts (%s)", hosts, s.Hosts)
	}
	about += ", " + s.Path
	if s.PerCore > 1 {
		about += fmt.Sprintf(", %d ranks for each core", s.PerCore)
	}
	switch {
	case s.BoundTo == 1:
		about += ", bound to a core each"
	case s.BoundTo > 1:
		about += fmt.Sprintf(", bound to %d cores each", s.BoundTo)
	}
	return about
}

// flaw returns why the setting cannot be in a table, "" if it can.
func (s Setting) flaw() string {
	n, _, ok := members(s.Hosts)
	switch {
	case s.Path == "" || len(s.Path) > maxName:
		return fmt.Sprintf("a path of %d bytes", len(s.Path))
	case !ok || len(s.Hosts) > maxLayout:
		return "hosts that cannot be read"
	case n < 2:
		return "fewer than two members"
	case s.PerCore < 1 || s.PerCore > maxMembers:
		return fmt.Sprintf("%d members for each core", s.PerCore)
	case s.BoundTo < 0 || s.BoundTo > maxMembers:
		return fmt.Sprintf("a binding to %d cores", s.BoundTo)
	}
	return ""
}
