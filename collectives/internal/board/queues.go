package board

import (
	"context"
	"fmt"
	"slices"

	"github.com/gopgas/gopgas/internal/wait"
)

// Queues are one member's ends of the queues between the members of a team, which
// all graphs of the team use. They are used by one goroutine at a time.
type Queues struct {
	tuning
	rank, n int
	crowded bool
	await   func(ctx context.Context, ready func() bool) error
	view    func(member int, region, offset uint64, n int) []byte
	dead    func(member int) bool
	to      []*sender   // by member, nil where there is none yet
	from    []*receiver // likewise
	failure error
}

// NewQueues returns a member's queues, of which there are none yet. Of c, Mem and
// Bells are not used.
func NewQueues(c Config) (*Queues, error) {
	return newQueuesWith(c, edgeTuning(max(c.Size, 1), c.Crowded))
}

func newQueuesWith(c Config, t tuning) (*Queues, error) {
	if c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size || c.Await == nil {
		return nil, fmt.Errorf("board: queues of member %d of %d", c.Rank, c.Size)
	}
	return &Queues{tuning: t, rank: c.Rank, n: c.Size, crowded: c.Crowded, await: c.Await, view: c.View, dead: deadBy(c.Dead),
		to: make([]*sender, c.Size), from: make([]*receiver, c.Size)}, nil
}

// Missing returns the members among out to which, and among in from which, there
// is no queue yet, each once and without this one, which needs none.
func (q *Queues) Missing(in, out []int) (from, to []int) {
	for _, m := range in {
		if m != q.rank && q.from[m] == nil && !slices.Contains(from, m) {
			from = append(from, m)
		}
	}
	for _, m := range out {
		if m != q.rank && q.to[m] == nil && !slices.Contains(to, m) {
			to = append(to, m)
		}
	}
	return from, to
}

// LeadTo gives a queue to a member memory of this member's, QueueSize bytes.
func (q *Queues) LeadTo(member int, mem []byte, bell wait.Ringer) error {
	made, err := newQueue(mem, q.bay)
	if err == nil {
		q.to[member] = &sender{queue: made, member: member, bell: bell}
	}
	return err
}

// LeadFrom finds the queue from a member in that one's memory.
func (q *Queues) LeadFrom(member int, mem []byte, bell wait.Ringer) error {
	made, err := newQueue(mem, q.bay)
	if err == nil {
		q.from[member] = &receiver{queue: made, member: member, bell: bell}
	}
	return err
}
