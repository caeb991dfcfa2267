package model

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var small = [2]int{9, 7}

func TestGradientIsTheSlopeOfTheLoss(t *testing.T) {
	net := New(small, make([]float32, Count(small)))
	net.Init(1)
	p, grads := NewPass(net), make([]float32, len(net.Params))
	class := NewDigits(1).Draw(5, p.Image())
	p.Gradient(class, 2, grads)
	const step = 1e-2
	for i := 0; i < len(grads); i += 17 {
		at := net.Params[i]
		net.Params[i] = at + step
		above := p.Gradient(class, 0, make([]float32, len(grads)))
		net.Params[i] = at - step
		below := p.Gradient(class, 0, make([]float32, len(grads)))
		net.Params[i] = at
		require.InDelta(t, (above-below)/(2*step), grads[i]/2, 2e-2, "parameter %d", i)
	}
}

func TestImagesAreFunctionsOfSeedAndNumber(t *testing.T) {
	a, b := make([]float32, Pixels), make([]float32, Pixels)
	class := NewDigits(1).Draw(3, a)
	again := NewDigits(1)
	again.Draw(2, b)
	require.Equal(t, class, again.Draw(3, b))
	require.Equal(t, a, b)
	NewDigits(2).Draw(3, b)
	require.NotEqual(t, a, b)
	seen := map[int]int{}
	for i := range 1000 {
		seen[again.Draw(i, b)]++
	}
	require.Len(t, seen, Classes)
}

func TestTensorsCoverTheParameters(t *testing.T) {
	ends := Tensors(small)
	require.True(t, slices.IsSorted(ends))
	require.Equal(t, Count(small), ends[len(ends)-1])
	require.Equal(t, []int{Pixels * 9, Pixels*9 + 9}, ends[:2])
}

// TestNetworkLearnsDigits trains alone, as the workers do together.
func TestNetworkLearnsDigits(t *testing.T) {
	hidden := [2]int{48, 32}
	net := New(hidden, make([]float32, Count(hidden)))
	net.Init(1)
	p, digits, grads := NewPass(net), NewDigits(1), make([]float32, len(net.Params))
	right := func() (n int) {
		fresh := NewDigits(99)
		for i := range 500 {
			if class := fresh.Draw(i, p.Image()); p.Says() == class {
				n++
			}
		}
		return n
	}
	require.Less(t, right(), 150, "before it has learned")
	var loss float64
	for step := range 150 {
		clear(grads)
		loss = 0
		for i := range 32 {
			loss += p.Gradient(digits.Draw(step*32+i, p.Image()), 1.0/32, grads) / 32
		}
		axpy(-0.05, grads, net.Params)
	}
	require.False(t, math.IsNaN(loss))
	require.Greater(t, right(), 375)
	t.Logf("%d of 500", right())
}
