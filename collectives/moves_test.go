package collectives_test

import (
	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
)

// moves are the collectives that only move data.
func moves() []trial {
	return []trial{
		{"Gather", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			return gathers(s, r, r.Me == s.root, func(in, out []affine) collectives.Call {
				return collectives.GatherCall(s.root, in, out, s.opts()...)
			})
		}},
		{"AllGather", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			return gathers(s, r, true, func(in, out []affine) collectives.Call {
				return collectives.AllGatherCall(in, out, s.opts()...)
			})
		}},
		{"GatherV", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			return gathersV(s, r, r.Me == s.root, func(in, out []affine) collectives.Call {
				return collectives.GatherVCall(s.root, in, out, s.blocks(), s.opts()...)
			})
		}},
		{"AllGatherV", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			return gathersV(s, r, true, func(in, out []affine) collectives.Call {
				return collectives.AllGatherVCall(in, out, s.blocks(), s.opts()...)
			})
		}},
		{"Scatter", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			var in []affine
			out := s.memory(r, s.count)
			if r.Me == s.root {
				in = s.holding(r, s.brings(s.root, 0, s.n*s.count))
				if s.inPlace {
					out = in[r.Me*s.count:][:s.count]
				}
			}
			return collectives.ScatterCall(s.root, in, out, s.opts()...), func() {
				matches(r, s, s.brings(s.root, r.Me*s.count, s.count), out)
			}
		}},
		{"ScatterV", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			var in []affine
			var blocks collectives.Blocks
			if r.Me == s.root {
				in, blocks = s.holding(r, s.brings(s.root, 0, s.span())), s.blocks()
			}
			out := s.memory(r, s.counts[r.Me])
			return collectives.ScatterVCall(s.root, in, blocks, out, s.opts()...), func() {
				matches(r, s, s.brings(s.root, s.offsets[r.Me], s.counts[r.Me]), out)
			}
		}},
		{"AllToAll", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			in, out := s.holding(r, s.brings(r.Me, 0, s.n*s.count)), s.memory(r, s.n*s.count)
			return collectives.AllToAllCall(in, out, s.opts()...), func() {
				for from := range s.n {
					matches(r, s, s.brings(from, r.Me*s.count, s.count), out[from*s.count:][:s.count])
				}
			}
		}},
		{"AllToAllV", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			to, from := collectives.Blocks{Counts: s.matrix[r.Me]}, collectives.Blocks{}
			total := 0
			for rank := range s.n {
				from.Counts = append(from.Counts, s.matrix[rank][r.Me])
				total += s.matrix[rank][r.Me]
			}
			in, out := s.holding(r, s.brings(r.Me, 0, sum(to.Counts))), s.memory(r, total)
			return collectives.AllToAllVCall(in, to, out, from, s.opts()...), func() {
				at := 0
				for rank, count := range from.Counts {
					matches(r, s, s.brings(rank, sum(s.matrix[rank][:r.Me]), count), out[at:][:count])
					at += count
				}
			}
		}},
	}
}

func gathers(s *scenario, r *testjob.Rank, receives bool, call func(in, out []affine) collectives.Call) (collectives.Call, func()) {
	in, out := s.holding(r, s.brings(r.Me, 0, s.count)), []affine(nil)
	if receives {
		out = s.memory(r, s.n*s.count)
		if s.inPlace {
			own := out[r.Me*s.count:][:s.count]
			copy(own, in)
			in = own
		}
	}
	return call(in, out), func() {
		for from := 0; from < s.n && receives; from++ {
			matches(r, s, s.brings(from, 0, s.count), out[from*s.count:][:s.count])
		}
	}
}

func gathersV(s *scenario, r *testjob.Rank, receives bool, call func(in, out []affine) collectives.Call) (collectives.Call, func()) {
	in, out := s.holding(r, s.brings(r.Me, 0, s.counts[r.Me])), []affine(nil)
	if receives {
		out = s.memory(r, s.span())
	}
	return call(in, out), func() {
		for from := 0; from < s.n && receives; from++ {
			matches(r, s, s.brings(from, 0, s.counts[from]), out[s.offsets[from]:][:s.counts[from]])
		}
	}
}

func sum(counts []int) int {
	total := 0
	for _, c := range counts {
		total += c
	}
	return total
}
