package runtime

// BreakInSilence breaks a team at this rank as a call that fails does, but the
// messages to the others are lost. Of a team that is unmade this rank knows no more
// than of one that it could not make.
func BreakInSilence(t *Team, cause error, unmade bool) {
	m := newBreakMessage(&TeamError{Team: t.name, Rank: t.members[t.rank], Call: "Barrier", Reason: cause, Cause: cause.Error()})
	e := m.err()
	t.breaks(e)
	if unmade {
		t.job.mu.Lock()
		delete(t.job.teams, t.name)
		t.job.mu.Unlock()
	}
	t.job.remember(e)
}
