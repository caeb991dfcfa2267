package main

import (
	"math"
	"math/rand/v2"
)

// A network is a multilayer perceptron: tanh between layers, softmax at the end.
//
//	at --> layer 0 --> tanh --> layer 1 --> tanh --> layer 2 --> softmax --> class
//
// Its parameters lie in one slice, layer by layer, each with a row of weights
// per input and then a bias per output.
type network struct {
	widths []int // of the input, and behind each layer
	params []float64
}

// newNetwork returns a network with random weights.
func newNetwork(hidden int) *network {
	n := &network{widths: []int{2, hidden, hidden, arms}}
	_, end := n.layer(n.last())
	n.params = make([]float64, end)
	return n
}

func (n *network) last() int { return len(n.widths) - 2 }

// layer returns the range of the parameters of layer l.
func (n *network) layer(l int) (from, to int) {
	for i := range l + 1 {
		from, to = to, to+(n.widths[i]+1)*n.widths[i+1]
	}
	return from, to
}

// draw draws all weights; biases are 0. (Glorot and Bengio, "Understanding the
// difficulty of training deep feedforward neural networks", 2010.)
func (n *network) draw(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for l := range n.last() + 1 {
		from, _ := n.layer(l)
		in, out := n.widths[l], n.widths[l+1]
		for i := range in * out {
			n.params[from+i] = r.NormFloat64() * math.Sqrt(2/float64(in+out))
		}
	}
}

// A pass takes samples through a network, and errors back. It keeps the values
// between layers, one row per sample.
type pass struct {
	*network
	rows   int
	values [][]float64 // values[l] goes into layer l
	errors []float64   // the loss's derivatives by the output of a layer
	before []float64   // the same of the layer before
	probs  [arms]float64
}

// newPass returns the memory that one pass forward and back needs.
func newPass(n *network, rows int) *pass {
	p := &pass{network: n, errors: make([]float64, rows*maxOf(n.widths)), before: make([]float64, rows*maxOf(n.widths))}
	for _, width := range n.widths {
		p.values = append(p.values, make([]float64, rows*width))
	}
	return p
}

// forward computes the network's output for one sample, as row row: each class's
// probability.
func (p *pass) forward(row int, at [2]float64) []float64 {
	copy(p.values[0][row*2:], at[:])
	for l := range p.last() + 1 {
		from, to := p.layer(l)
		in, out := p.widths[l], p.widths[l+1]
		x, y := p.values[l][row*in:][:in], p.values[l+1][row*out:][:out]
		copy(y, p.params[to-out:to])
		for i, v := range x {
			for j, w := range p.params[from+i*out:][:out] {
				y[j] += v * w
			}
		}
		if l < p.last() {
			for j := range y {
				y[j] = math.Tanh(y[j])
			}
		}
	}
	softmax(p.probs[:], p.values[p.last()+1][row*arms:][:arms])
	return p.probs[:]
}

// softmax turns scores into shares that sum up to 1. It subtracts the largest score, so that no
// power overflows.
func softmax(probs, scores []float64) {
	sum, top := 0.0, maxOf(scores)
	for i, s := range scores {
		probs[i] = math.Exp(s - top)
		sum += probs[i]
	}
	for i := range probs {
		probs[i] /= sum
	}
}

// gradient stores in grads the derivatives of the samples' loss by each parameter,
// and behind them the loss itself. The loss is cross entropy, in which each sample
// counts weight. It calls ready when a layer's part of grads is complete, the last
// layer's first; that part may then leave while gradient computes the next one.
func (p *pass) gradient(grads []float64, batch []sample, weight float64, ready func(layer int) error) error {
	p.rows = len(batch)
	clear(grads)
	for row, s := range batch {
		probs := p.forward(row, s.at)
		grads[len(p.params)] -= weight * math.Log(probs[s.class])
		for j, q := range probs {
			p.errors[row*arms+j] = weight * q
		}
		p.errors[row*arms+s.class] -= weight
	}
	for l := p.last(); l >= 0; l-- {
		p.derive(grads, l)
		if err := ready(l); err != nil {
			return err
		}
		if l > 0 {
			p.back(l)
		}
	}
	return nil
}

// derive computes the derivatives of layer l's parameters.
func (p *pass) derive(grads []float64, l int) {
	from, to := p.layer(l)
	in, out := p.widths[l], p.widths[l+1]
	for row := range p.rows {
		errs := p.errors[row*out:][:out]
		for i, v := range p.values[l][row*in:][:in] {
			for j, g := 0, grads[from+i*out:][:out]; j < len(g); j++ {
				g[j] += v * errs[j]
			}
		}
		for j, e := range errs {
			grads[to-out+j] += e
		}
	}
}

// back takes the errors through layer l and the tanh before it.
func (p *pass) back(l int) {
	from, _ := p.layer(l)
	in, out := p.widths[l], p.widths[l+1]
	for row := range p.rows {
		errs := p.errors[row*out:][:out]
		for i, v := range p.values[l][row*in:][:in] {
			sum := 0.0
			for j, w := range p.params[from+i*out:][:out] {
				sum += w * errs[j]
			}
			p.before[row*in+i] = sum * (1 - v*v)
		}
	}
	p.errors, p.before = p.before, p.errors
}

// maxOf returns the greatest number.
func maxOf[T int | float64](of []T) T {
	top := of[0]
	for _, v := range of {
		top = max(top, v)
	}
	return top
}
