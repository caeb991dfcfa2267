package message

import "context"

// AllGatherRing: in each step a member sends the next one the block that it got
// last.
//
//	n = 3             step 0      step 1
//	member 0   a..        a.c         abc
//	member 1   .b.  -->   ab.   -->   abc
//	member 2   ..c        .bc         abc
//
// Every member talks to its two neighbors only.
//
// Cost: n-1 rounds, m(n-1)/n bytes.
//
// (Chan, Heimlich, Purkayastha and van de Geijn, "Collective Communication:
// Theory, Practice, and Experience", 2007, "bucket algorithms".)
func AllGatherRing(ctx context.Context, c Transport, a *Args) error {
	b := a.gathered()
	a.copyTo(c, b.of(a.Recv, c.Rank()), a.Send)
	return ringAllGather(ctx, c, 0, a.Recv, b)
}
