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
// the sum of the sizes of the other entries of its row, plus 1: so the matrix is positive
// definite, and the ratio of its eigenvalues is bounded by the largest row over the least.
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

// solve solves the system whose unknowns are all 1. gather returns the values of a vector
// of which each rank has its part, so that m's columns are places in it. sum adds up the
// values of all ranks.
func solve(m *matrix, tolerance float64, gather func([]float64) ([]float64, error), sum func([]float64) error) (x []float64, iterations int, err error) {
	n := m.end - m.first
	x = make([]float64, n)
	residual, p, product := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range residual { // of x = 0: the right side, which is the sum of each row
		for k := m.offsets[i]; k < m.offsets[i+1]; k++ {
			residual[i] += m.entries[k]
		}
	}
	copy(p, residual)
	square := []float64{dot(residual, residual)}
	if err := sum(square); err != nil {
		return nil, 0, err
	}
	begin := square[0]
	for ; square[0] > tolerance*tolerance*begin; iterations++ {
		if iterations > 10*m.n+100 {
			return nil, 0, errDiverges
		}
		values, err := gather(p)
		if err != nil {
			return nil, 0, err
		}
		m.times(product, values)
		curve := []float64{dot(p, product)}
		if err := sum(curve); err != nil {
			return nil, 0, err
		}
		step := square[0] / curve[0]
		for i := range x {
			x[i] += step * p[i]
			residual[i] -= step * product[i]
		}
		before := square[0]
		square[0] = dot(residual, residual)
		if err := sum(square); err != nil {
			return nil, 0, err
		}
		for i := range p {
			p[i] = residual[i] + square[0]/before*p[i]
		}
	}
	return x, iterations, nil
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
