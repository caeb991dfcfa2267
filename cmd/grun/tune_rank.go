//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/tuned"
	"github.com/gopgas/gopgas/runtime"
)

// A tuneLine is a line that rank 0 prints for its grun, in JSON.
type tuneLine struct {
	Setting *tuneSetting `json:"setting,omitempty"`
	Sample  *sample      `json:"sample,omitempty"`
	Trial   *trial       `json:"trial,omitempty"`
	Done    float64      `json:"done,omitempty"` // the part of the job that is done; 1: all
}

// A tuneSetting says where the ranks run.
type tuneSetting struct {
	tuned.Setting
	Machines []tuned.Machine `json:"machines"`
}

// A sample is the time of a call by an algorithm.
type sample struct {
	Collective string  `json:"collective"`
	Bytes      int     `json:"bytes"` // of the longest buffer
	Algorithm  string  `json:"algorithm"`
	Chosen     bool    `json:"chosen"` // without a table
	Micros     float64 `json:"micros"` // the median
	Least      float64 `json:"least"`
}

// A tuner measures algorithms at a rank. Rank 0 keeps the time and announces the
// next batch.
type tuner struct {
	tuneOptions
	world *runtime.Team
	out   *json.Encoder
	next  []int64 // candidate and calls of a batch
}

// A candidate is a call by an algorithm.
type candidate struct {
	name   string
	chosen bool
	plan   *collectives.Planned
	count  int  // elements of its longest buffer
	calls  int  // of a batch
	apart  bool // a barrier comes before each call
	took   []time.Duration
}

const (
	tuneBatch = time.Millisecond // where there is time for it
	// hopeless: an algorithm whose first batch takes so many times as long as the
	// best one's gets no second.
	hopeless   = 3
	fewCalls   = 4  // of a batch, at least: a stream
	few        = 3  // batches of a candidate, at least
	enough     = 25 // at most
	cacheLine  = 64 // bytes
	endOfTurns = -1
)

// newTuner returns the tuner of a rank. Rank 0 prints where the ranks run.
func (o *tuneOptions) newTuner(ctx context.Context, job *runtime.Job) (*tuner, error) {
	t := &tuner{tuneOptions: *o, world: job.World(), out: json.NewEncoder(io.Discard), next: make([]int64, 2)}
	if t.world.Rank() == 0 {
		t.out = json.NewEncoder(os.Stdout)
	}
	setting, ok := tuned.SettingOf(team.Of(t.world))
	if !ok {
		return nil, fmt.Errorf("a table cannot describe these ranks, %v: they have different providers or bindings", setting)
	}
	machines, err := machinesOf(ctx, t.world)
	if err != nil {
		return nil, err
	}
	return t, t.out.Encode(tuneLine{Setting: &tuneSetting{setting, machines}})
}

// machinesOf returns the machines of all ranks, each kind once.
func machinesOf(ctx context.Context, world *runtime.Team) (list []tuned.Machine, err error) {
	here, err := tuned.Here()
	if err != nil {
		return nil, err
	}
	mine, err := json.Marshal(here)
	if err != nil {
		return nil, err
	}
	texts, err := world.Exchange(ctx, mine)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		var m tuned.Machine
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, err
		}
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list, nil
}

// measure runs at each rank: every collective at every size.
func (o *tuneOptions) measure(ctx context.Context, job *runtime.Job) error {
	t, err := o.newTuner(ctx, job)
	if err != nil {
		return err
	}
	all, end := o.calls(), time.Now().Add(o.time)
	left := len(all) * len(o.sizes())
	total := float64(left)
	for _, c := range all {
		room, err := t.allocate(max(t.world.Size(), int(t.max)/tuneElement))
		if err != nil {
			return err
		}
		counts := t.counts(c)
		left -= len(o.sizes()) - len(counts)
		for _, count := range counts {
			if err := t.compare(ctx, c, room, count, time.Until(end)/time.Duration(left)); err != nil {
				return err
			}
			left--
			if err := t.out.Encode(tuneLine{Done: 1 - float64(left)/total}); err != nil {
				return err
			}
		}
		if err := t.world.Barrier(ctx); err != nil { // other ranks may still read
			return err
		}
		if err := room.free(); err != nil {
			return err
		}
	}
	return nil
}

// counts returns the counts of elements that make the sizes of a collective.
func (t *tuner) counts(c tuneCall) []int {
	var counts []int
	for _, size := range t.sizes() {
		counts = append(counts, max(1, size/tuneElement/c.longest(t.world.Size())))
	}
	return slices.Compact(counts)
}

// compare measures a collective of one size by all algorithms that can do it, in
// turns.
func (t *tuner) compare(ctx context.Context, c tuneCall, room *tuneRoom, count int, share time.Duration) error {
	list, err := t.candidates(ctx, c, room, count)
	if err != nil {
		return err
	}
	if t.world.Rank() != 0 {
		return t.follow(ctx, list, room)
	}
	if err := t.lead(ctx, list, room, share); err != nil {
		return err
	}
	for _, cand := range list {
		slices.Sort(cand.took)
		err := t.out.Encode(tuneLine{Sample: &sample{c.name, count * tuneElement * c.longest(t.world.Size()), cand.name, cand.chosen,
			micros(cand.took[len(cand.took)/2]), micros(cand.took[0])}})
		if err != nil {
			return err
		}
	}
	return nil
}

// candidates plans a call by each algorithm, once, which opens the pipes and
// memory that it needs.
func (t *tuner) candidates(ctx context.Context, c tuneCall, room *tuneRoom, count int) ([]*candidate, error) {
	open := c.call(t.world, room, count)
	chosen, err := open.Choice(t.world)
	if err != nil {
		return nil, err
	}
	var list []*candidate
	for _, name := range open.Algorithms(t.world) {
		plan, err := t.plan(ctx, c.call(t.world, room, count, collectives.WithAlgorithm(name)))
		if err != nil {
			return nil, err
		}
		if plan == nil {
			continue // the algorithm cannot do this
		}
		if err := plan.Run(ctx); err != nil {
			return nil, err
		}
		list = append(list, &candidate{name: name, chosen: name == chosen, plan: plan, count: count * c.longest(t.world.Size()), calls: fewCalls, apart: t.apart})
	}
	return list, nil
}

// plan plans a call at all ranks. It returns nil at all of them if one cannot: lists of
// candidates must be the same, since rank 0 announces them by number.
func (t *tuner) plan(ctx context.Context, c collectives.Call) (*collectives.Planned, error) {
	plan, err := collectives.Plan(ctx, t.world, c)
	return t.unanimous(ctx, plan, err == nil)
}

// unanimous returns plan if all ranks could plan the call, else nil.
func (t *tuner) unanimous(ctx context.Context, plan *collectives.Planned, planned bool) (*collectives.Planned, error) {
	all := []int64{0}
	if planned {
		all[0] = 1
	}
	if err := collectives.AllReduce(ctx, t.world, collectives.Min[int64](), all, all); err != nil || all[0] == 0 {
		return nil, err
	}
	return plan, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// lead has all ranks make batches until the time is over and every candidate that
// is not hopeless has had a few.
func (t *tuner) lead(ctx context.Context, list []*candidate, room *tuneRoom, share time.Duration) error {
	end, longest := time.Now().Add(share), batchFor(share, len(list))
	hope := slices.Clone(list)
	for round := 0; round < enough && (round < few || time.Now().Before(end)); round++ {
		best := time.Duration(-1)
		for _, cand := range hope {
			took, err := t.batch(ctx, list, cand, room)
			for err == nil && took < longest/2 && round == 0 {
				cand.calls *= 2
				took, err = t.batch(ctx, list, cand, room)
			}
			if err != nil {
				return err
			}
			each := max(1, took/time.Duration(cand.calls))
			cand.took = append(cand.took, each)
			if best < 0 || each < best {
				best = each
			}
		}
		if round == 0 {
			hope = slices.DeleteFunc(hope, func(c *candidate) bool { return c.took[0] > hopeless*best && !c.chosen })
		}
	}
	return t.endTurns(ctx)
}

// endTurns lets the other ranks stop following.
func (t *tuner) endTurns(ctx context.Context) error {
	t.next[0] = endOfTurns
	return collectives.Broadcast(ctx, t.world, 0, t.next)
}

// batchFor returns the length of a batch of n candidates: tuneBatch, or less where
// a few of each would not fit. Where enough of each leave time, batches are
// longer, which makes the result more exact.
func batchFor(share time.Duration, n int) time.Duration {
	share = max(0, share)
	return max(min(tuneBatch, share/time.Duration(2*few*n)), share/time.Duration(enough*n))
}

// batch announces a candidate's calls and makes them.
func (t *tuner) batch(ctx context.Context, list []*candidate, cand *candidate, room *tuneRoom) (time.Duration, error) {
	t.next[0], t.next[1] = int64(slices.Index(list, cand)), int64(cand.calls)
	if err := collectives.Broadcast(ctx, t.world, 0, t.next); err != nil {
		return 0, err
	}
	return t.repeat(ctx, cand, cand.calls, room)
}

// follow makes the batches that rank 0 announces.
func (t *tuner) follow(ctx context.Context, list []*candidate, room *tuneRoom) error {
	for {
		if err := collectives.Broadcast(ctx, t.world, 0, t.next); err != nil {
			return err
		}
		if t.next[0] == endOfTurns {
			return nil
		}
		if _, err := t.repeat(ctx, list[t.next[0]], int(t.next[1]), room); err != nil {
			return err
		}
	}
}

// repeat makes calls with new input between two barriers.
func (t *tuner) repeat(ctx context.Context, cand *candidate, calls int, room *tuneRoom) (time.Duration, error) {
	room.renew(cand.count)
	if cand.apart {
		return t.repeatApart(ctx, cand, calls)
	}
	if err := t.world.Barrier(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	for range calls {
		if err := cand.plan.Run(ctx); err != nil {
			return 0, err
		}
	}
	err := t.world.Barrier(ctx)
	return time.Since(began), err
}

// repeatApart makes calls of which none begins before the last one has ended. It returns the
// time within calls, at the rank where that was longest.
func (t *tuner) repeatApart(ctx context.Context, cand *candidate, calls int) (time.Duration, error) {
	within := make([]int64, 1)
	for range calls {
		if err := t.world.Barrier(ctx); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := cand.plan.Run(ctx); err != nil {
			return 0, err
		}
		within[0] += int64(time.Since(began))
	}
	err := collectives.AllReduce(ctx, t.world, collectives.Max[int64](), within, within)
	return time.Duration(within[0]), err
}
