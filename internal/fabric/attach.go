package fabric

import "sync"

// An Attachment holds the state that a layer above shares between all its objects of one
// rank. The fabric closes it ahead of itself, so that it touches no peer's memory later.
type Attachment interface{ Close() }

// attachments holds at most one attachment per layer.
type attachments struct {
	mu     sync.Mutex
	byName map[string]Attachment
	closed bool
}

// Attach returns the attachment of a name. The first call makes it. Attach fails with
// ErrClosed once the fabric is closing.
func (f *Fabric) Attach(name string, first func() Attachment) (Attachment, error) {
	f.attached.mu.Lock()
	defer f.attached.mu.Unlock()
	if f.attached.closed {
		return nil, ErrClosed
	}
	a := f.attached.byName[name]
	if a == nil {
		a = first()
		if f.attached.byName == nil {
			f.attached.byName = map[string]Attachment{}
		}
		f.attached.byName[name] = a
	}
	return a, nil
}

// close closes all that was attached. Later calls of Attach fail.
func (a *attachments) close() {
	a.mu.Lock()
	all := a.byName
	a.byName, a.closed = nil, true
	a.mu.Unlock()
	for _, attached := range all {
		attached.Close()
	}
}
