package pipe

import "fmt"

// ranks returns the ranks of the writer and of the reader. The client of a heap is its writer.
func (p *End) ranks() (writer, reader int) {
	if p.writing {
		return p.Rank, p.Peer
	}
	return p.Peer, p.Rank
}

// key returns the key by which this end counts incarnations.
func (p *End) key() string {
	writer, reader := p.ranks()
	return fmt.Sprintf("%s/%d-%d/%s", p.Options.Name, writer, reader, p.side(p.writing))
}

// region names the memory of one end of an incarnation.
func (p *End) region(incarnation int, writing bool) string {
	writer, reader := p.ranks()
	return fmt.Sprintf("rpipe/%s/%s#%d/%d-%d/%s", p.team.Name, p.Options.Name, incarnation, writer, reader, p.side(writing))
}

// side names one end. A heap and a pipe of one name do not meet.
func (p *End) side(writing bool) string {
	switch {
	case p.Spec.Served && writing:
		return "client"
	case p.Spec.Served:
		return "server"
	case writing:
		return "w"
	}
	return "r"
}
