package main

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func none(int) error { return nil }

// draws returns the first samples.
func draws(n int) []sample {
	data, out := newSamples(5), []sample{}
	for i := range n {
		out = append(out, data.draw(i))
	}
	return out
}

// TestGradientEqualsDifferencesOfTheLoss compares every derivative with a difference of
// losses.
func TestGradientEqualsDifferencesOfTheLoss(t *testing.T) {
	const rows, h = 7, 1e-5
	net := newNetwork(4)
	net.draw(1)
	batch := draws(rows)
	p := newPass(net, rows)
	grads, other := make([]float64, len(net.params)+1), make([]float64, len(net.params)+1)
	require.NoError(t, p.gradient(grads, batch, 1./rows, none))
	loss := func(i int, by float64) float64 {
		was := net.params[i]
		net.params[i] += by
		require.NoError(t, p.gradient(other, batch, 1./rows, none))
		net.params[i] = was
		return other[len(net.params)]
	}
	largest := 0.0
	for i := range net.params {
		require.InDeltaf(t, (loss(i, h)-loss(i, -h))/(2*h), grads[i], 1e-8, "parameter %d", i)
		largest = max(largest, math.Abs(grads[i]))
	}
	require.Greater(t, largest, 0.01, "there is something to compare")
}

func TestLayerIsReadyWhenItsGradientIsComplete(t *testing.T) {
	net := newNetwork(4)
	net.draw(1)
	p, grads := newPass(net, 3), make([]float64, len(net.params)+1)
	seen := make([]float64, len(grads))
	var order []int
	require.NoError(t, p.gradient(grads, draws(3), 1, func(l int) error {
		from, to := net.layer(l)
		copy(seen[from:to], grads[from:to])
		if l == net.last() {
			seen[to] = grads[to]
		}
		order = append(order, l)
		return nil
	}))
	require.Equal(t, []int{2, 1, 0}, order)
	require.Equal(t, seen, grads)
	bad := errors.New("no")
	require.ErrorIs(t, p.gradient(grads, draws(3), 1, func(int) error { return bad }), bad)
}

func TestLayersFollowOneAnother(t *testing.T) {
	net, end := newNetwork(5), 0
	for l := range net.last() + 1 {
		from, to := net.layer(l)
		require.Equal(t, end, from)
		require.Equal(t, (net.widths[l]+1)*net.widths[l+1], to-from)
		end = to
	}
	require.Len(t, net.params, end)
}

func TestProbabilitiesAddUpToOne(t *testing.T) {
	probs := make([]float64, 3)
	softmax(probs, []float64{1000, 999, -1000})
	require.InDelta(t, 1, probs[0]+probs[1]+probs[2], 1e-15)
	require.InDelta(t, math.E, probs[0]/probs[1], 1e-12)
	require.Zero(t, probs[2])
}

func TestSamplesAreAFunctionOfTheirNumber(t *testing.T) {
	data, count := newSamples(5), [arms]int{}
	for i, s := range draws(300) {
		count[s.class]++
		require.LessOrEqual(t, math.Hypot(s.at[0], s.at[1]), 1.)
		require.Equal(t, s, newSamples(5).draw(i))
	}
	require.Equal(t, draws(10)[9], data.draw(9), "in any order")
	require.NotEqual(t, data.draw(9), newSamples(6).draw(9), "another seed")
	for _, c := range count {
		require.InDelta(t, 100, c, 40)
	}
}
