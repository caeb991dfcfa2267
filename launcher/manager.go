//go:build linux

package launcher

// A managerError is the loss of a host because a resource manager ended the job.
type managerError struct{ why string }

func (e *managerError) Error() string { return e.why }

// managerSays returns why a resource manager ended the job, or "". said is the end of the
// standard error of a command.
func (j *job) managerSays(said string) string {
	if m, ok := j.spec.Backend.(Manager); ok {
		return m.Ended(said)
	}
	return ""
}

// endedBy returns why a resource manager ended the job, or "". The caller has closed the
// agents: a manager that signals all processes writes its reason after some of them have ended.
func (j *job) endedBy() string {
	for _, h := range j.hosts {
		if h.remote == nil || h.agent == nil {
			continue
		}
		if why := j.managerSays(h.remote.said); why != "" {
			return why
		}
	}
	return ""
}
