package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"os"
	goruntime "runtime"

	"github.com/gopgas/gopgas/internal/cgroup"
	"github.com/gopgas/gopgas/internal/memory"
)

// A hostCard tells the other ranks of a job without a launcher where this one runs.
type hostCard struct {
	Host         string   // see thisHost
	Cores        []uint64 // the affinity mask of this process
	Quota        float64  `json:",omitempty"` // cores' time that it may use; 0: no limit
	Reservations string   `json:",omitempty"` // path of a memfd for the ranks of this host
}

// findHost exchanges cards with all ranks and completes the environment of this one.
func (m *membership) findHost(ctx context.Context) error {
	card := newHostCard()
	reserved, err := memory.NewReservations(m.env.Size)
	if err != nil {
		return err
	}
	m.reserved = reserved
	card.Reservations = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), reserved.FD())
	mine, err := json.Marshal(card)
	if err != nil {
		return err
	}
	texts, err := m.conn.Start(ctx, mine)
	if err != nil {
		return err
	}
	cards := make([]hostCard, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal(text, &cards[i]); err != nil {
			return fmt.Errorf("card of rank %d: %w", i, err)
		}
	}
	m.settle(cards)
	if m.env.LocalRank == 0 {
		return nil
	}
	m.reserved = nil
	return reserved.Close()
}

// newHostCard describes this process's host, cores and quota, for the other ranks.
func newHostCard() hostCard {
	card := hostCard{Host: thisHost(), Cores: coreMask()}
	if quota := cgroup.Quota(os.DirFS("/")); !math.IsInf(quota, 1) {
		card.Quota = quota
	}
	return card
}

// maskWords bounds an affinity mask: the system's has room for 1024 cores.
const maskWords = 1024 / 64

// settle completes the environment of this rank by the cards of all ranks. The ranks of
// a host are numbered in the order of their ranks. Ranks that are bound to different
// cores have all of these.
func (m *membership) settle(cards []hostCard) {
	e, mine := &m.env, cards[m.env.Rank]
	var cores [maskWords]uint64
	for rank, card := range cards {
		if card.Host != mine.Host {
			continue
		}
		if rank < e.Rank {
			e.LocalRank++
		}
		if e.LocalSize == 0 {
			e.Reservations = card.Reservations
		}
		e.LocalSize++
		for i := range min(len(cores), len(card.Cores)) {
			cores[i] |= card.Cores[i]
		}
	}
	e.LocalCores = 0
	for _, word := range cores {
		e.LocalCores += bits.OnesCount64(word)
	}
	if e.LocalCores == 0 { // no rank could read its mask
		e.LocalCores = goruntime.NumCPU()
	}
	if mine.Quota > 0 {
		e.LocalCores = max(1, min(e.LocalCores, int(mine.Quota)))
	}
}
