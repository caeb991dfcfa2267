package bootstrap

import (
	"fmt"
	"slices"
	"strings"
)

// Ranks names ranks: "rank 3", or "ranks 0-2,5". It sorts them.
func Ranks(ranks []int) string {
	slices.Sort(ranks)
	var parts []string
	for i := 0; i < len(ranks); {
		last := i
		for last+1 < len(ranks) && ranks[last+1] <= ranks[last]+1 {
			last++
		}
		part := fmt.Sprint(ranks[i])
		if ranks[last] > ranks[i] {
			part += fmt.Sprintf("-%d", ranks[last])
		}
		parts, i = append(parts, part), last+1
	}
	if len(parts) == 1 && !strings.Contains(parts[0], "-") {
		return "rank " + parts[0]
	}
	return "ranks " + strings.Join(parts, ",")
}
