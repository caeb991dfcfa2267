package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/gopgas/gopgas/internal/team"
)

// A collective call that takes long may wait for members that make another one. If no
// message between them shows the difference, an inquiry does. The rank that waits sends
// its present call and earlier ones to some members. A member with another call of the
// same number breaks the team.
//
//	waiting since 100 ms                       member
//	call 7 is AllReduce of 4 float64, Sum  ->  call 7 is Barrier: break the team
//	     6 is Barrier ...                  ->  has not made call 7 yet: 6, ...
//	                                       ->  closes the job, makes no call 7: break the team
const (
	inquireAfter = 100 * time.Millisecond
	// inquireBackoff bounds how often a waiting rank doubles the time between
	// inquiries.
	inquireBackoff = 3
	// inquireOf is the number of members that get an inquiry at a time.
	inquireOf = 8
)

// inquiryService names the message with this rank's calls.
const inquiryService = "team.inquiry"

// An inquiryMessage tells a member which calls this rank has made. The member compares them with
// its own.
type inquiryMessage struct {
	Team  string
	Seq   uint64
	Calls []team.Call // the call of Seq and earlier ones, the latest first
}

// recount returns the call of a number and earlier ones. Precondition: the mutex is
// held.
func (s *stream) recount(seq uint64) (calls []team.Call) {
	for ; len(calls) < team.Recounted; seq-- {
		c, known := s.remember(seq)
		if !known {
			break
		}
		calls = append(calls, c)
	}
	return calls
}

// An inquiry checks at intervals whether a call takes long.
type inquiry struct {
	timer *time.Timer
	armed bool
	last  uint64 // number of the latest call at the last check
	under uint64 // number of the call under way at the last check, or 0
	round int    // inquiries about that call so far
}

// attend starts the checks. Precondition: the stream's mutex is held.
func (t *Team) attend() {
	q := &t.stream.inquiry
	q.armed = true
	if len(t.members) == 1 {
		return // there is no other member
	}
	if q.timer == nil {
		q.timer = time.AfterFunc(inquireAfter, t.inquire)
		return
	}
	q.timer.Reset(inquireAfter)
}

// unattended ends the checks: the stream has no more calls.
func (s *stream) unattended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inquiry.timer != nil {
		s.inquiry.timer.Stop()
	}
}

// inquire checks once. It sends inquiries about a call that was under way at the check
// before, too. It ends the checks if no call was made since the check before.
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
	inquire := under != 0 && under == q.under
	if inquire {
		q.round++
	} else {
		q.round = 0
	}
	q.last, q.under = s.last.Seq, under
	round := q.round
	calls := s.recount(under)
	q.timer.Reset(inquireAfter << min(round, inquireBackoff))
	s.mu.Unlock()
	if inquire {
		t.sendInquiries(round-1, under, calls)
	}
}

// sendInquiries sends the inquiry to the next few members, so that in time all get it.
func (t *Team) sendInquiries(round int, seq uint64, calls []team.Call) {
	others := len(t.members) - 1
	for i := range min(inquireOf, others) {
		t.sendInquiry((t.rank+1+(round*inquireOf+i)%others)%len(t.members), seq, calls)
	}
}

// sendInquiry sends a member this rank's calls. It ignores errors: the member is then
// dead or leaving, and another path reports that.
func (t *Team) sendInquiry(member int, seq uint64, calls []team.Call) {
	payload, err := json.Marshal(inquiryMessage{t.name, seq, calls})
	if err == nil {
		_ = t.job.client.Tell(t.members[member], inquiryService, payload)
	}
}

// handleInquiry compares another rank's calls with those of this rank. If the team is
// broken, the rank that waits does not know it, and handleInquiry tells it.
func (j *Job) handleInquiry(from int, m inquiryMessage) {
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
func (s *stream) compare(m inquiryMessage) (mine, theirs team.Call, differ bool) {
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

// differsFor bounds the wait for a member that compares calls.
const differsFor = 2 * time.Second

var errNoDifference = errors.New("what a member sent belongs to another collective call")

// differs waits until a member has compared its calls with those of this rank.
func (t *Team) differs(ctx context.Context, seq uint64, member int) error {
	s := &t.stream
	s.mu.Lock()
	c, _ := s.remember(seq)
	calls := s.recount(seq)
	s.mu.Unlock()
	t.sendInquiry(member, seq, calls)
	ctx, cancel := context.WithTimeoutCause(ctx, differsFor, errNoDifference)
	defer cancel()
	err := t.inner.Await(ctx, func() bool { return false })
	if errors.Is(err, errNoDifference) {
		return &MismatchError{Team: t.name, Rank: t.members[t.rank], Call: c.String(),
			Other: t.members[member], OtherDid: "something else"}
	}
	return err
}
