package ibv

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

func TestRequestNumbersSurviveTheDevice(t *testing.T) {
	for _, k := range []kind{kindSend, kindRecv, kindMarker} {
		incarnation, gotKind, seq := splitID(requestID(1<<31+5, k, 1<<32-1))
		require.Equal(t, uint32(1<<31+5), incarnation)
		require.Equal(t, k, gotKind)
		require.Equal(t, uint32(seqMask), seq)
	}
}

// The model is a plain list of the posted requests that have not ended.
func TestSlotsBehaveLikeAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 5).Draw(t, "depth")
		s := slots{Ring: wq.NewRing[slot](depth), seq: rapid.Uint32().Draw(t, "start")}
		var model []slot
		var numbers []uint32
		t.Repeat(map[string]func(*rapid.T){
			"post": func(t *rapid.T) {
				if s.Room() == 0 {
					t.Skip("full")
				}
				sl := slot{id: rapid.Uint64().Draw(t, "id"), bytes: len(model), op: driver.OpRead, signaled: rapid.Bool().Draw(t, "signaled")}
				model, numbers = append(model, sl), append(numbers, s.next()&seqMask)
				*s.Push() = sl
				s.owned++
			},
			"refuse": func(t *rapid.T) {
				n := rapid.IntRange(0, s.Len()).Draw(t, "n")
				s.untake(n)
				model, numbers = model[:len(model)-n], numbers[:len(numbers)-n]
			},
			"complete": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				older, ok := s.find(numbers[i])
				require.True(t, ok)
				require.Equal(t, i, older)
				require.Equal(t, model[i], *s.At(i))
				s.drop(older + 1)
				_, again := s.find(numbers[i])
				require.False(t, again, "it has ended")
				model, numbers = model[i+1:], numbers[i+1:]
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), s.Len())
				require.Equal(t, len(model), s.owned)
				require.Equal(t, depth-len(model), s.Room())
				for i := range model {
					require.Equal(t, model[i], *s.At(i))
				}
			},
		})
	})
}

func TestRequestsThatTheDeviceDoesNotHoldAreNotFound(t *testing.T) {
	s := slots{Ring: wq.NewRing[slot](4)}
	*s.Push() = slot{id: 1}
	s.owned++
	*s.Push() = slot{id: 2} // posted in ERR
	_, ok := s.find(0)
	require.True(t, ok)
	for _, seq := range []uint32{1, 2, seqMask} {
		_, ok = s.find(seq)
		require.False(t, ok, "%d", seq)
	}
	s.reset()
	_, ok = s.find(0)
	require.False(t, ok)
	require.Equal(t, uint32(2), s.next(), "numbers go on")
}

func TestOnlySignaledRequestsAreDue(t *testing.T) {
	for _, c := range []struct {
		name       string
		slots      []slot
		due, waits bool
	}{
		{"nothing", nil, false, false},
		{"nothing signaled", []slot{{op: driver.OpWrite}, {op: driver.OpSend}}, false, true},
		{"a write", []slot{{op: driver.OpWrite}, {op: driver.OpRead, signaled: true}, {op: driver.OpSend}}, true, false},
		{"a send", []slot{{op: driver.OpSend, signaled: true}}, true, true},
		{"behind a notice", []slot{{op: driver.OpWriteImm}, {op: driver.OpRead, signaled: true}}, true, true},
	} {
		s := slots{Ring: wq.NewRing[slot](4)}
		for _, sl := range c.slots {
			*s.Push() = sl
			s.owned++
		}
		due, waits := s.due()
		require.Equal(t, c.due, due, c.name)
		require.Equal(t, c.waits, waits, c.name)
	}
}
