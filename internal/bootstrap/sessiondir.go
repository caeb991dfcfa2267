package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// dirStore is a directory of one job on one host: Open MPI's mpirun makes one that no other
// user can open, and removes it at its end. Each rank makes a file there once. Rank 0's has
// the card.
type dirStore struct {
	dir string
	job string // tells jobs of one mpirun apart
}

func (d dirStore) path(rank int) string {
	return filepath.Join(d.dir, fmt.Sprintf("gopgas-%s-%d", d.job, rank))
}

// open checks that no other user can read the folder. Each rank but 0 makes a file there: a second
// process of the same rank finds it.
func (d dirStore) open(_ context.Context, e *Env) (bool, error) {
	info, err := os.Stat(d.dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false, &EnvError{mpirunDir, d.dir, "want a directory that only this user can open; " + mpirunByHand}
	}
	if e.Rank == 0 {
		return true, nil
	}
	f, err := os.OpenFile(d.path(e.Rank), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false, d.refusal(e, err)
	}
	return true, f.Close()
}

// refusal returns the error of a file that could not be made.
func (d dirStore) refusal(e *Env, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return &RefusedError{Rank: e.Rank, Reason: d.path(e.Rank) + " exists", Joined: true}
	}
	return fmt.Errorf("make a file for rank %d: %w", e.Rank, err)
}

// publish makes the file of rank 0. Other ranks see no part of it.
func (d dirStore) publish(_ context.Context, e *Env, card string) error {
	f, err := os.CreateTemp(d.dir, "gopgas-*")
	if err != nil {
		return fmt.Errorf("make a file for rank 0: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // the link stays
	_, err = f.WriteString(card)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("make a file for rank 0: %w", err)
	}
	if err := os.Link(f.Name(), d.path(0)); err != nil {
		return d.refusal(e, err)
	}
	return nil
}

// find waits for the file of rank 0.
func (d dirStore) find(ctx context.Context, _ *Env) (string, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		text, err := os.ReadFile(d.path(0))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return string(text), err
		}
		if err := sleep(ctx, pause); err != nil {
			return "", &DialError{Addr: d.path(0), Cause: err}
		}
	}
}
