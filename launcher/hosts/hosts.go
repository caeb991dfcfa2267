//go:build linux

// Package hosts reads lists of hosts, and places ranks on them.
//
//	-H a:2,b:2             [ReadList]
//	hostfile               [ReadFile]     Open MPI's, Hydra's and Slurm's spellings
//	   |
//	 []Host --[Place]--> the host of each rank
package hosts

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// A Host is a host with room for some ranks.
type Host struct {
	Name  string // as ssh takes it: a name, an alias of its configuration, or an address without brackets
	User  string // "": as ssh decides
	Slots int    // ranks that have room
	Max   int    // ranks even where slots are oversubscribed; 0: no bound
}

// String returns the host as ssh takes it: user@name or name.
func (h Host) String() string {
	if h.User != "" {
		return h.User + "@" + h.Name
	}
	return h.Name
}

// IsThis reports whether this process runs on the host.
func (h Host) IsThis() bool {
	if h.User != "" {
		return false
	}
	if ip := net.ParseIP(h.Name); ip != nil {
		return ip.IsLoopback()
	}
	name, err := os.Hostname()
	short, _, _ := strings.Cut(name, ".")
	return h.Name == "localhost" || err == nil && (h.Name == name || h.Name == short)
}

// Merge adds up the slots of repeated hosts, which keep their first place. A host has a
// bound if each of its entries has one.
func Merge(list []Host) (merged []Host) {
	at := make(map[string]int)
	for _, h := range list {
		i, ok := at[h.String()]
		if !ok {
			at[h.String()] = len(merged)
			merged = append(merged, h)
			continue
		}
		m := &merged[i]
		m.Slots += h.Slots
		if m.Max == 0 || h.Max == 0 {
			m.Max = 0
		} else {
			m.Max += h.Max
		}
	}
	return merged
}

// Slots returns the number of ranks that have room.
func Slots(list []Host) (n int) {
	for _, h := range list {
		n += h.Slots
	}
	return n
}

// By is an order in which ranks are placed.
type By int

// Orders of placement.
const (
	BySlot By = iota // all slots of a host, then those of the next
	ByNode           // one rank on each host in turn
)

// ParseBy reads slot or node.
func ParseBy(text string) (By, error) {
	switch text {
	case "", "slot":
		return BySlot, nil
	case "node":
		return ByNode, nil
	}
	return BySlot, fmt.Errorf("map by %q; choose slot or node", text)
}

// Place returns the index of each rank's host. More ranks than slots are an error unless
// they may oversubscribe: then the hosts take as many again, in the same order.
func Place(list []Host, ranks int, by By, oversubscribe bool) (places []int, err error) {
	if slots := Slots(list); ranks > slots && !oversubscribe {
		return nil, fmt.Errorf("%d ranks on %d slots: name more hosts or slots (-H host:slots), or give --oversubscribe", ranks, slots)
	}
	taken := make([]int, len(list))
	for lap := 1; len(places) < ranks; lap++ {
		before := len(places)
		places = round(places, taken, list, ranks, by, lap)
		if len(places) == before {
			return nil, fmt.Errorf("%d ranks: the hosts take at most %d (max_slots)", ranks, before)
		}
	}
	return places, nil
}

// round fills each host up to lap times its slots.
func round(places, taken []int, list []Host, ranks int, by By, lap int) []int {
	room := func(i int) bool {
		h := list[i]
		return len(places) < ranks && taken[i] < lap*h.Slots && (h.Max == 0 || taken[i] < h.Max)
	}
	for placed := true; placed; {
		placed = false
		for i := range list {
			for room(i) {
				places, placed = append(places, i), true
				taken[i]++
				if by == ByNode {
					break
				}
			}
		}
	}
	return places
}
