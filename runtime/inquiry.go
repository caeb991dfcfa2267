package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/gopgas/gopgas/internal/team"
)

// A collective call that takes long may wait for members that make another one.
// Where no message between them shows it, this does: the rank that waits tells
// some members what it is doing and did before, and one that is doing, or has
// done, something else under the same number breaks the team.
//
//	waiting since 100 ms                       member
//	call 7 is AllReduce of 4 float64, Sum  ->  call 7 is Barrier: break the team
//	     6 is Barrier ...                  ->  has not made call 7 yet: 6, ...
//	                                       ->  closes the job, makes no call 7: break the team
const (
	inquireAfter = 100 * time.Millisecond
	// inquireBackoff doublings later a waiting rank asks no less often.
	inquireBackoff = 3
	// inquireOf is how many members are asked at a time.
	inquireOf = 8
)

// askService is the message that tells a member what this rank is doing.
const askService = "team.ask"

type askMessage struct {
	Team  string
	Seq   uint64
	Calls []team.Call // that of Seq and those before, the latest first
}

// recounted is how many calls are told.
const recounted = 16

// recount returns the call of a number and those before. Called with the mutex
// held.
func (s *stream) recount(seq uint64) (calls []team.Call) {
	for ; len(calls) < recounted; seq-- {
		c, known := s.remember(seq)
		if !known {
			break
		}
		calls = append(calls, c)
	}
	return calls
}

// An inquiry looks now and then whether a call takes long.
type inquiry struct {
	timer *time.Timer
	armed bool
	last  uint64 // what it saw: the latest call,
	under uint64 // the one under way,
	round int    // and how often it asked about that
}

// attend has the inquiry look. Called with the stream's mutex held.
func (t *Team) attend() {
	q := &t.stream.inquiry
	q.armed = true
	if len(t.members) == 1 {
		return // nobody to ask, ever
	}
	if q.timer == nil {
		q.timer = time.AfterFunc(inquireAfter, t.inquire)
		return
	}
	q.timer.Reset(inquireAfter)
}

// unattended ends the looks: no call comes any more.
func (s *stream) unattended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inquiry.timer != nil {
		s.inquiry.timer.Stop()
	}
}

// inquire is one look. It asks about a call that was under way at the look before,
// too, and looks no more once nothing has happened in between.
func (t *Team) inquire() {
	s := &t.stream
	s.mu.Lock()
	q := &s.inquiry
	under := s.ended.Load() + 1
	if under > s.last.Seq {
		under = 0
	}
	if t.whole.Err() != nil || under == 0 && q.last == s.last.Seq {
		q.armed = false
		q.round = 0
		s.mu.Unlock()
		return
	}
	ask := under != 0 && under == q.under
	if ask {
		q.round++
	} else {
		q.round = 0
	}
	q.last, q.under = s.last.Seq, under
	round := q.round
	calls := s.recount(under)
	q.timer.Reset(inquireAfter << min(round, inquireBackoff))
	s.mu.Unlock()
	if ask {
		t.askSome(round-1, under, calls)
	}
}

// askSome asks the next few members, so that in time all are asked.
func (t *Team) askSome(round int, seq uint64, calls []team.Call) {
	others := len(t.members) - 1
	for i := range min(inquireOf, others) {
		t.ask((t.rank+1+(round*inquireOf+i)%others)%len(t.members), seq, calls)
	}
}

// ask tells a member what this rank is doing. One that cannot be told is dead or
// leaving, which is found elsewhere.
func (t *Team) ask(member int, seq uint64, calls []team.Call) {
	payload, err := json.Marshal(askMessage{t.name, seq, calls})
	if err == nil {
		_ = t.job.client.Tell(t.members[member], askService, payload)
	}
}

// asked compares what another rank is doing with what this one does or did. A rank
// that waits in a team which is broken has not heard of it.
func (j *Job) asked(from int, m askMessage) {
	if e := j.brokenFor(m.Team); e != nil {
		j.tellBroken(from, newBreakMessage(e))
		return
	}
	j.mu.Lock()
	t := j.teams[m.Team]
	j.mu.Unlock()
	if t == nil {
		return
	}
	if mine, theirs, differ := t.stream.compare(m); differ {
		_ = t.failed(mine.Name, &MismatchError{Team: t.name, Rank: t.members[t.rank], Call: mine.String(),
			Other: from, OtherDid: theirs.String()})
	}
}

// close records that this rank makes no more calls, apart from the world's last.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
}

// compare returns the first two calls of the same number that differ.
func (s *stream) compare(m askMessage) (mine, theirs team.Call, differ bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range m.Calls {
		seq := m.Seq - uint64(i)
		own, known := s.remember(seq)
		if s.closing && seq > s.last.Seq {
			own, known = s.own[team.Close], true
		}
		if known && own != c {
			mine, theirs, differ = own, c, true
		}
	}
	return mine, theirs, differ
}

// differsFor bounds the wait for a member that compares.
const differsFor = 2 * time.Second

var errNoDifference = errors.New("what a member sent belongs to another collective call")

// differs waits for a member to find out how its calls differ from this rank's.
func (t *Team) differs(ctx context.Context, seq uint64, member int) error {
	s := &t.stream
	s.mu.Lock()
	c, _ := s.remember(seq)
	calls := s.recount(seq)
	s.mu.Unlock()
	t.ask(member, seq, calls)
	ctx, cancel := context.WithTimeoutCause(ctx, differsFor, errNoDifference)
	defer cancel()
	err := t.inner.Await(ctx, func() bool { return false })
	if errors.Is(err, errNoDifference) {
		return &MismatchError{Team: t.name, Rank: t.members[t.rank], Call: c.String(),
			Other: t.members[member], OtherDid: "something else"}
	}
	return err
}
