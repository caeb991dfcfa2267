package pipe

import (
	"fmt"

	"github.com/gopgas/gopgas/internal/team"
)

// A Pairing holds the names by which two ends find each other.
type Pairing struct {
	Team           *team.Team
	Name           string
	Writer, Reader int // in the team
}

// Key returns the key by which one end counts incarnations.
func (p *Pairing) Key(end string) string {
	return fmt.Sprintf("%s/%d-%d/%s", p.Name, p.Writer, p.Reader, end)
}

// Region names the memory of one end of an incarnation.
func (p *Pairing) Region(incarnation int, end string) string {
	return fmt.Sprintf("rpipe/%s/%s#%d/%d-%d/%s", p.Team.Name, p.Name, incarnation, p.Writer, p.Reader, end)
}

const (
	writersEnd = "w"
	readersEnd = "r"
)
