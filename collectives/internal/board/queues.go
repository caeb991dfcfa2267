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
	to      []*sender   // by member, nil without a queue
	from    []*receiver // likewise
	failure error
}

// NewQueues returns a member's queues: none at first. It does not use Mem and
// Find of c.
func NewQueues(c Config) (*Queues, error) {
	return newQueuesWith(c, edgeTuning(max(c.Size, 1), c.Crowded))
}

// newQueuesWith is NewQueues with other sizes, for tests.
func newQueuesWith(c Config, t tuning) (*Queues, error) {
	if c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size || c.Await == nil {
		return nil, fmt.Errorf("board: queues of member %d of %d", c.Rank, c.Size)
	}
	return &Queues{tuning: t, rank: c.Rank, n: c.Size, crowded: c.Crowded, await: c.Await, view: c.View, dead: deadBy(c.Dead),
		to: make([]*sender, c.Size), from: make([]*receiver, c.Size)}, nil
}

// Missing returns the members among in from which, and among out to which, this
// member has no queue yet. It names each once, and never this member itself.
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

// LeadTo makes a queue to a member, in memory of this member, QueueSize bytes.
func (q *Queues) LeadTo(member int, mem []byte, bell wait.Ringer) error {
	made, err := newQueue(mem, q.large)
	if err == nil {
		q.to[member] = &sender{queue: made, member: member, bell: bell}
	}
	return err
}

// LeadFrom finds the queue from a member in that member's memory.
func (q *Queues) LeadFrom(member int, mem []byte, bell wait.Ringer) error {
	made, err := newQueue(mem, q.large)
	if err == nil {
		q.from[member] = &receiver{queue: made, member: member, bell: bell}
	}
	return err
}
