package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

func TestSettleFindsTheRanksAndCoresOfAHost(t *testing.T) {
	cards := []hostCard{
		{Host: "a", Cores: []uint64{0b0001}, Reservations: "/a0"},
		{Host: "b", Cores: []uint64{0b1111, 1}, Quota: 2.5, Reservations: "/b1"},
		{Host: "a", Cores: []uint64{0b0110}, Reservations: "/a2"},
		{Host: "b", Cores: []uint64{0b1111, 1}, Quota: 2.5, Reservations: "/b3"},
		{Host: "a", Cores: []uint64{0b0010}, Quota: 0.5, Reservations: "/a4"},
		{Host: "c", Reservations: "/c5"},
	}
	type env = bootstrap.Env
	for rank, want := range []env{
		{LocalRank: 0, LocalSize: 3, LocalCores: 3, Reservations: "/a0"},
		{LocalRank: 0, LocalSize: 2, LocalCores: 2, Reservations: "/b1"},
		{LocalRank: 1, LocalSize: 3, LocalCores: 3, Reservations: "/a0"},
		{LocalRank: 1, LocalSize: 2, LocalCores: 2, Reservations: "/b1"},
		{LocalRank: 2, LocalSize: 3, LocalCores: 1, Reservations: "/a0"},
		{LocalRank: 0, LocalSize: 1, LocalCores: 0, Reservations: "/c5"},
	} {
		m := membership{place: place{env: env{Rank: rank}}}
		m.settle(cards)
		if want.Rank = rank; want.LocalCores == 0 { // this process' own number
			want.LocalCores = m.env.LocalCores
			require.Positive(t, m.env.LocalCores)
		}
		require.Equal(t, want, m.env)
	}
	mine := newHostCard()
	require.Equal(t, thisHost(), mine.Host)
	require.NotEmpty(t, mine.Cores)
	require.NotZero(t, mine.Cores[len(mine.Cores)-1])
}
