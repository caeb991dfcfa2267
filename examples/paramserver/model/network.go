package model

import (
	"math"
	"math/rand/v2"
)

// A Network has two hidden layers. Its parameters lie in one slice, which may be memory of
// a window: layer by layer, a row of weights for each output and then the outputs' biases.
//
//	pixels --> layer 0 --> ReLU --> layer 1 --> ReLU --> layer 2 --> softmax --> digit
type Network struct {
	widths [4]int
	Params []float32
}

// Count returns the number of parameters of a network with these hidden widths.
func Count(hidden [2]int) int {
	n := &Network{widths: widths(hidden)}
	return n.end(2)
}

func widths(hidden [2]int) [4]int { return [4]int{Pixels, hidden[0], hidden[1], Classes} }

// New returns a network whose parameters are params.
func New(hidden [2]int, params []float32) *Network {
	return &Network{widths(hidden), params}
}

// Tensors returns the ends of the layers' weights and biases in the parameters, in
// their order. A parameter server gives each tensor a key, or several.
func Tensors(hidden [2]int) (ends []int) {
	n := &Network{widths: widths(hidden)}
	for l := range 3 {
		ends = append(ends, n.end(l)-n.widths[l+1], n.end(l))
	}
	return ends
}

// end returns the end of layer l in Params.
func (n *Network) end(l int) (at int) {
	for i := range l + 1 {
		at += (n.widths[i] + 1) * n.widths[i+1]
	}
	return at
}

// layer returns the weights and biases of layer l in a slice as long as Params.
func (n *Network) layer(l int, all []float32) (weights, biases []float32) {
	end := n.end(l)
	cut := end - n.widths[l+1]
	return all[cut-n.widths[l]*n.widths[l+1] : cut], all[cut:end]
}

// Init draws the first parameters from a seed. (He et al., "Delving Deep into
// Rectifiers", 2015.)
func (n *Network) Init(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	clear(n.Params)
	for l := range 3 {
		weights, _ := n.layer(l, n.Params)
		scale := math.Sqrt(2 / float64(n.widths[l]))
		for i := range weights {
			weights[i] = float32(scale * random.NormFloat64())
		}
	}
}

// A Pass holds the values of one image at a network's layers, and their derivatives.
type Pass struct {
	net    *Network
	values [4][]float32 // of the pixels and behind each layer
	slopes [4][]float32
}

// NewPass returns room for one image at a time. One goroutine uses it.
func NewPass(net *Network) *Pass {
	p := &Pass{net: net}
	for i, w := range net.widths {
		p.values[i], p.slopes[i] = make([]float32, w), make([]float32, w)
	}
	return p
}

// Image is the memory from which Says and Gradient read the image.
func (p *Pass) Image() []float32 { return p.values[0] }

// Says returns the digit that the network sees in the image.
func (p *Pass) Says() (class int) {
	p.forward()
	for i, v := range p.values[3] {
		if v > p.values[3][class] {
			class = i
		}
	}
	return class
}

// forward computes the values of all layers for one image. All but the last are rectified.
func (p *Pass) forward() {
	for l := range 3 {
		weights, biases := p.net.layer(l, p.net.Params)
		in, out := p.values[l], p.values[l+1]
		for o := range out {
			out[o] = biases[o] + dot(weights[o*len(in):][:len(in)], in)
			if l < 2 {
				out[o] = max(out[o], 0)
			}
		}
	}
}

// Gradient adds scale times the loss's derivatives by each parameter to grads and returns the
// loss: the cross entropy of the image's digit. (Rumelhart, Hinton and Williams,
// "Learning representations by back-propagating errors", 1986.)
func (p *Pass) Gradient(class int, scale float32, grads []float32) (loss float64) {
	p.forward()
	loss = softmax(p.values[3], p.slopes[3], class)
	for l := 2; l >= 0; l-- {
		weights, _ := p.net.layer(l, p.net.Params)
		rows, biases := p.net.layer(l, grads)
		in, below := p.values[l], p.slopes[l]
		clear(below)
		for o, s := range p.slopes[l+1] {
			if s == 0 { // as behind a ReLU without output
				continue
			}
			biases[o] += scale * s
			axpy(scale*s, in, rows[o*len(in):][:len(in)])
			if l > 0 {
				axpy(s, weights[o*len(in):][:len(in)], below)
			}
		}
		for i, v := range in {
			if v <= 0 {
				below[i] = 0
			}
		}
	}
	return loss
}

// softmax fills slopes with the derivatives of the loss by values, and returns the loss.
func softmax(values, slopes []float32, class int) (loss float64) {
	most, sum := values[0], 0.0
	for _, v := range values {
		most = max(most, v)
	}
	for _, v := range values {
		sum += math.Exp(float64(v - most))
	}
	for i, v := range values {
		slopes[i] = float32(math.Exp(float64(v-most)) / sum)
	}
	slopes[class]--
	return math.Log(sum) - float64(values[class]-most)
}

// dot returns the product of two vectors, in four sums that need not wait for each other.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// axpy adds f times x to y.
func axpy(f float32, x, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += f * v
	}
}
