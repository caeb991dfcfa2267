package verbs

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeysMatchAMap(t *testing.T) {
	var table keys
	model := map[Key]*MR{}
	for i := range 5000 {
		k := Key{Lo: uint64(i) << 8} // as devices number them
		model[k] = &MR{lkey: k}
		table.add(model[k])
		if i%3 == 0 {
			gone := Key{Lo: uint64(i/2) << 8}
			if mr := model[gone]; mr != nil {
				table.drop(mr)
				table.drop(mr) // twice does nothing
				delete(model, gone)
			}
		}
	}
	require.Equal(t, len(model), table.live)
	for i := range 5001 {
		k := Key{Lo: uint64(i) << 8}
		require.Same(t, model[k], table.find(k))
	}
}

// Growing makes fewer than two entries for each region that entered. A table that each
// registration copies would make 32 million.
func TestRegistrationsMoveEachRegionABoundedNumberOfTimes(t *testing.T) {
	const n = 8000
	var table keys
	for i := range n {
		table.add(&MR{lkey: Key{Hi: uint64(i), Lo: uint64(i) << 8}})
	}
	require.LessOrEqual(t, table.moved, 2*n)
	longest := 0
	for i := range *table.buckets.Load() {
		length := 0
		for e := (*table.buckets.Load())[i].Load(); e != nil; e = e.next.Load() {
			length++
		}
		longest = max(longest, length)
	}
	require.Less(t, longest, 16)
	require.Zero(t, testing.AllocsPerRun(100, func() { table.find(Key{Hi: 1, Lo: 1 << 8}) }))
}

func TestReadersFindARegionWhileOthersEnterAndLeave(t *testing.T) {
	var table keys
	stays := &MR{lkey: Key{Lo: 1}}
	table.add(stays)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if table.find(stays.lkey) != stays {
					t.Error("the region is not found")
					return
				}
			}
		})
	}
	var others []*MR
	for i := range 2000 {
		others = append(others, &MR{lkey: Key{Lo: uint64(i + 2)}})
		table.add(others[i])
	}
	for _, mr := range others {
		table.drop(mr)
	}
	close(stop)
	readers.Wait()
	require.Equal(t, 1, table.live)
}
