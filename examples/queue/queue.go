package main

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A queue lies at one rank, its owner. Any rank pushes, and the owner pops, in the order of
// tickets.
//
//	pusher                                owner
//	ticket = FetchAdd(tail, 1)
//	wait until ticket < popped + places
//	put into place ticket % places,
//	with signal ticket + 1            --> wait for the signal of the next place; pop
//	                                  <-- put the number of popped elements, now and then
//
// A push is one atomic operation and one put. It neither polls nor takes a lock. A pusher
// waits for room in its own memory, where the owner stores its progress.
type queue[T any] struct {
	team     *runtime.Team
	owner    int
	places   uint64
	elements *window.Window[T]
	counts   *window.Window[uint64]
	popped   uint64 // at the owner
	told     uint64 // at the owner: popped as the pushers know it
}

// These are the elements of counts.
const (
	atTail   = iota // at the owner: tickets that pushers have taken
	atPopped        // at each rank: elements that the owner has popped, as it told last
	counts
)

// newQueue makes a queue with so many places at the owner. Kind: collective.
func newQueue[T any](ctx context.Context, team *runtime.Team, owner, places int) (*queue[T], error) {
	if places < 1 {
		return nil, fmt.Errorf("queue of %d places: give at least one", places)
	}
	q := &queue[T]{team: team, owner: owner, places: uint64(places)}
	at := 0
	if team.Rank() == owner {
		at = places
	}
	var err error
	if q.elements, err = window.AllocateV[T](ctx, team, at, window.WithName("elements"), window.WithSlots(places)); err != nil {
		return nil, err
	}
	q.counts, err = window.Allocate[uint64](ctx, team, counts, window.WithName("counts"))
	return q, err
}

// push appends an element. It waits while the queue is full. Elements of one rank are
// popped in the order of push. If ctx ends a push that has its ticket, the owner waits for
// that element in vain: end the job then. Kind: one-sided.
func (q *queue[T]) push(ctx context.Context, v T) error {
	ticket, err := window.FetchAdd(ctx, q.counts, q.owner, atTail, 1)
	if err != nil {
		return err
	}
	if ticket >= q.places {
		room := window.Elements[uint64]{At: []int{atPopped}, Condition: window.AtLeast, Value: ticket - q.places + 1}
		if _, _, err := window.WaitUntil(ctx, q.counts, room); err != nil {
			return err
		}
	}
	at := int(ticket % q.places)
	return q.elements.PutNotify(ctx, q.owner, at, []T{v}, window.Signal{Slot: at, Value: ticket + 1})
}

// pop removes the first element, and waits for one. Only the owner calls it.
func (q *queue[T]) pop(ctx context.Context) (v T, err error) {
	at := int(q.popped % q.places)
	arrived := window.Until{Slots: []int{at}, Condition: window.AtLeast, Value: q.popped + 1}
	if _, _, err = q.elements.WaitNotify(ctx, arrived); err != nil {
		return v, err
	}
	v = q.elements.Local()[at]
	q.popped++
	// Pushers wait for whole quarters of the places, so that the owner need not tell them
	// of each.
	if q.popped-q.told >= (q.places+3)/4 {
		err = q.tell(ctx)
	}
	return v, err
}

// tell stores the number of popped elements at all ranks.
func (q *queue[T]) tell(ctx context.Context) error {
	for rank := range q.team.Size() {
		if err := window.AtomicStore(ctx, q.counts, rank, atPopped, q.popped); err != nil {
			return err
		}
	}
	q.told = q.popped
	return nil
}

// free frees the queue's memory. Kind: collective.
func (q *queue[T]) free(ctx context.Context) error {
	if err := q.elements.Free(ctx); err != nil {
		return err
	}
	return q.counts.Free(ctx)
}
