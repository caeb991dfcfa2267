package loggp

import "github.com/gopgas/gopgas/collectives/internal/message"

// A memory holds the buffers of a call. All ranks use the same ones, since a replay moves no
// bytes and runs one rank at a time.
type memory struct {
	machine    *Machine
	send, recv []byte
	scratch    []byte
	hosts      *message.Hosts
}

// newMemory makes the buffers of a call whose longest one has so many bytes.
func newMemory(m *Machine, c message.Collective, bytes int) *memory {
	b := &memory{machine: m, send: make([]byte, bytes), recv: make([]byte, bytes)}
	switch c {
	case message.Gather, message.AllGather:
		b.send = b.send[:bytes/m.Ranks]
	case message.Scatter, message.ReduceScatter:
		b.recv = b.recv[:bytes/m.Ranks]
	}
	return b
}

// args returns the arguments of the call at a rank.
func (b *memory) args(r *rank) *message.Args {
	r.scratch = 0
	a := &message.Args{
		Elem: 1, Send: b.send, Recv: b.recv, Commutative: true,
		Combine: func(dst, _, _ []byte) { r.clock += b.machine.CombinePerByte * float64(len(dst)) },
		Scratch: func(n int) []byte {
			r.scratch += n
			if r.scratch > MostBytes {
				panic(errMemory)
			}
			if n > len(b.scratch) {
				b.scratch = make([]byte, n)
			}
			return b.scratch[:n:n]
		},
	}
	if b.hosts != nil {
		a.Hosts = b.hosts.Clone()
		r.scratch = 3 * 8 * b.hosts.Count() // its lists by host
	}
	return a
}

// hostsOf returns the hosts of a machine's ranks, with the algorithms for the parts of a call.
func hostsOf(m *Machine, bytes int) *message.Hosts {
	host := make([]int, m.Ranks)
	for i := range host {
		host[i] = m.host(i)
	}
	h := message.NewHosts(host)
	if m.Part != nil {
		h.Within = func(part message.Collective) message.Func { return m.part(part, bytes, false) }
		h.Among = func(part message.Collective) message.Func {
			if part == message.AllToAll { // all ranks of a host together
				return m.part(part, bytes*m.PerHost, true)
			}
			return m.part(part, bytes, true)
		}
	}
	return h
}

// part returns the algorithm for a part of a call. An unknown name stands for the last
// algorithm of the table, which can do any call.
func (m *Machine) part(what message.Collective, bytes int, among bool) message.Func {
	al, ok := message.Find(what, m.Part(what.String(), bytes, among))
	if !ok {
		all := message.Algorithms(what)
		al = all[len(all)-1]
	}
	return al.Run
}
