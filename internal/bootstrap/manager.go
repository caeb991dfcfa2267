package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/gopgas/gopgas/internal/pmi"
)

// A Manager is the process manager that started this rank, as far as the rank talks to it.
// A nil Manager takes all calls and does nothing.
type Manager struct{ client *pmi.Client }

// Finalize takes leave of the process manager. A rank that ends without it has failed: most
// process managers then kill the others. Kind: local.
func (m *Manager) Finalize(ctx context.Context) error {
	if m == nil {
		return nil
	}
	if err := m.client.Finalize(ctx); err != nil {
		return fmt.Errorf("take leave of the process manager: %w", err)
	}
	return nil
}

// Abort has the process manager kill all ranks, this one too, and reports whether there is a
// process manager. It does not wait. Kind: one-sided.
func (m *Manager) Abort(message string) bool {
	return m != nil && m.client.Abort(message) == nil
}

// cardKey is the key of the card in a key-value space.
const cardKey = "gopgas-rank-0"

// pmiStore is the key-value space of a process manager that speaks PMI.
type pmiStore struct{}

// open connects to the process manager, and takes rank and size from it. oneHost reports whether
// all ranks share a host. A job of one rank needs no store.
func (pmiStore) open(ctx context.Context, e *Env) (oneHost bool, err error) {
	client, err := pmi.Open(ctx, os.LookupEnv)
	var variable *pmi.VariableError
	switch {
	case errors.As(err, &variable):
		return false, &EnvError{variable.Name, variable.Value, variable.Want}
	case errors.Is(err, pmi.ErrUsed):
		return false, &RefusedError{Rank: e.Rank, Reason: err.Error(), Joined: true}
	case err != nil:
		return false, err
	}
	e.Manager = &Manager{client}
	e.Rank, e.Size = client.Rank(), client.Size()
	if e.Size == 1 {
		return true, nil
	}
	return client.OneNode(ctx)
}

// publish stores the card of rank 0 with the process manager. All ranks meet in the fence.
func (pmiStore) publish(ctx context.Context, e *Env, card string) error {
	if err := e.Manager.client.Put(ctx, cardKey, card); err != nil {
		return err
	}
	return e.Manager.client.Fence(ctx)
}

// find returns the card of rank 0 once all ranks have met in the fence.
func (pmiStore) find(ctx context.Context, e *Env) (string, error) {
	if err := e.Manager.client.Fence(ctx); err != nil {
		return "", err
	}
	return e.Manager.client.Get(ctx, cardKey)
}
