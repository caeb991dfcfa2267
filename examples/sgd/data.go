package main

import (
	"math"
	"math/rand/v2"
)

// The data: three arms of a spiral, which turn once around each other; no straight
// line separates them. Sample i is a function of the seed and of i, drawn by PCG
// from there.
//
//	class   one of three arms
//	radius  uniform from 0 to 1
//	angle   a third of a turn for each arm, 4 radius, and a normal deviation of 0.15
const (
	arms      = 3
	winding   = 4.0
	deviation = 0.15
)

// A sample is a point in the plane and its arm.
type sample struct {
	at    [2]float64
	class int
}

// samples makes samples again whenever they are needed, and stores none.
type samples struct {
	seed uint64
	pcg  *rand.PCG
	rand *rand.Rand
}

// newSamples returns an endless list of samples, the same at all ranks.
func newSamples(seed uint64) *samples {
	pcg := rand.NewPCG(seed, 0)
	return &samples{seed, pcg, rand.New(pcg)}
}

// draw returns sample i: a point of one of the arms of a spiral, and the arm.
func (s *samples) draw(i int) sample {
	s.pcg.Seed(s.seed, uint64(i))
	class, radius := s.rand.IntN(arms), s.rand.Float64()
	angle := 2*math.Pi*float64(class)/arms + winding*radius + deviation*s.rand.NormFloat64()
	return sample{[2]float64{radius * math.Cos(angle), radius * math.Sin(angle)}, class}
}
