package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
)

// A matrix is the rows [first, end) of a sparse matrix, without zeros.
type matrix struct {
	n, first, end int
	offsets       []int // of each row's entries, and of the end
	columns       []int
	entries       []float64
}

// An entry stands in the upper triangle, and in the lower one too.
type entry struct {
	row, column int
	value       float64
}

// newMatrix draws a symmetric matrix, and returns some of its rows. The diagonal is twice
// the sum of the sizes of the other entries of its row, plus 1. So the matrix is positive
// definite. The largest row over the least bounds the ratio of its eigenvalues.
func newMatrix(n, perRow, first, end int) *matrix {
	m := &matrix{n: n, first: first, end: end}
	rows := make([][]entry, end-first)
	add := func(row, column int, v float64) {
		if row >= first && row < end {
			rows[row-first] = append(rows[row-first], entry{row, column, v})
		}
	}
	for row := range n {
		rnd := rand.New(rand.NewPCG(1, uint64(row)))
		for range perRow {
			if column, v := rnd.IntN(n), rnd.Float64()-0.5; column != row {
				add(row, column, v)
				add(column, row, v)
			}
		}
	}
	m.offsets = []int{0}
	for i, row := range rows {
		m.fill(first+i, row)
	}
	return m
}

// fill appends a row: its diagonal, then its other entries by column, each once.
func (m *matrix) fill(row int, others []entry) {
	slices.SortStableFunc(others, func(a, b entry) int { return a.column - b.column })
	diagonal := 1.0
	at := len(m.entries)
	m.columns, m.entries = append(m.columns, row), append(m.entries, 0)
	for i, e := range others {
		diagonal += 2 * math.Abs(e.value)
		if i > 0 && e.column == others[i-1].column {
			m.entries[len(m.entries)-1] += e.value
			continue
		}
		m.columns, m.entries = append(m.columns, e.column), append(m.entries, e.value)
	}
	m.entries[at] = diagonal
	m.offsets = append(m.offsets, len(m.entries))
}

// times computes the rows of the matrix times a vector: columns are places in values.
func (m *matrix) times(out, values []float64) {
	for i := range out {
		sum := 0.0
		for k := m.offsets[i]; k < m.offsets[i+1]; k++ {
			sum += m.entries[k] * values[m.columns[k]]
		}
		out[i] = sum
	}
}

var errDiverges = errors.New("the residual does not become small")

// A vectors is this rank's part of the vectors of an iteration.
type vectors struct {
	x, residual   []float64
	direction     []float64 // the next step of x goes along it
	product       []float64 // the matrix times direction
	square, curve float64   // residual by residual and direction by product, over all ranks
}

// solve solves the system whose unknowns are all 1, by conjugate gradients. The function gather returns the
// values of a vector of which each rank has its part; the columns of m are places in it. The function sum
// adds up the values of all ranks.
func solve(m *matrix, tolerance float64, gather func([]float64) ([]float64, error), sum func([]float64) error) (x []float64, iterations int, err error) {
	v := m.start()
	if v.square, err = total(sum, v.residual, v.residual); err != nil {
		return nil, 0, err
	}
	for enough := tolerance * tolerance * v.square; v.square > enough; iterations++ {
		if iterations > 10*m.n+100 {
			return nil, 0, errDiverges
		}
		values, err := gather(v.direction)
		if err != nil {
			return nil, 0, err
		}
		m.times(v.product, values)
		if v.curve, err = total(sum, v.direction, v.product); err != nil {
			return nil, 0, err
		}
		v.step()
		before := v.square
		if v.square, err = total(sum, v.residual, v.residual); err != nil {
			return nil, 0, err
		}
		v.turn(v.square / before)
	}
	return v.x, iterations, nil
}

// start returns the vectors for x = 0. The residual is then the right side: the sum of each row.
func (m *matrix) start() *vectors {
	n := m.end - m.first
	v := &vectors{x: make([]float64, n), residual: make([]float64, n), product: make([]float64, n)}
	for i := range v.residual {
		for k := m.offsets[i]; k < m.offsets[i+1]; k++ {
			v.residual[i] += m.entries[k]
		}
	}
	v.direction = slices.Clone(v.residual)
	return v
}

// step moves x along the direction to where the error is least.
func (v *vectors) step() {
	length := v.square / v.curve
	for i := range v.x {
		v.x[i] += length * v.direction[i]
		v.residual[i] -= length * v.product[i]
	}
}

// turn makes the next direction of the residual and a share of the last direction.
func (v *vectors) turn(share float64) {
	for i := range v.direction {
		v.direction[i] = v.residual[i] + share*v.direction[i]
	}
}

// total returns the dot product of two vectors over all ranks.
func total(sum func([]float64) error, a, b []float64) (float64, error) {
	one := []float64{dot(a, b)}
	err := sum(one)
	return one[0], err
}

// dot returns the dot product of this rank's parts.
func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
