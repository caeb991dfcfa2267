package launcher

import "github.com/gopgas/gopgas/internal/bootstrap"

// Ranks names ranks: "rank 3", or "ranks 0-2,5". It sorts them.
func Ranks(ranks []int) string { return bootstrap.Ranks(ranks) }
