package tuned

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Load reads the table of a job: packed, which Pack made of the file, or else the file
// itself. The returned mark identifies its content. It returns ErrForeign for a table of
// other machines.
func Load(path, packed string) (t *Table, mark string, err error) {
	data, found, err := unpack(path, packed)
	if err == nil && !found {
		data, err = read(path)
	}
	if err != nil {
		return nil, "", err
	}
	if t, err = Decode(data); err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	here, err := Here()
	if err != nil {
		return nil, "", err
	}
	if !slices.Contains(t.Machines, here) {
		return nil, "", fmt.Errorf("%s: on %v, and this is %v: %w", path, t.Machines, here, ErrForeign)
	}
	return t, fmt.Sprintf("%x", sha256.Sum256(data))[:8], nil
}

// Read reads the table in a file, of whichever machines.
func Read(path string) (*Table, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return Decode(data)
}

// read reads a file; it refuses one that is too large to be a table.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}

// Save writes a table to a file, and makes the file's directory. A process that
// reads the file meanwhile finds the earlier table or this one, never a
// half-written one.
func (t *Table) Save(path string) error {
	data, err := t.Encode()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// DefaultPath returns the path of a machine's table for this user.
func DefaultPath(m Machine) (string, error) { return inCache(m.key()) }

// HostsPath returns the path of this user's table for jobs on the named hosts, in
// whichever order.
func HostsPath(names []string) (string, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return inCache(fmt.Sprintf("hosts-%x", sha256.Sum256(fmt.Appendf(nil, "%q", names)))[:22])
}

// inCache returns the path of a table in the user's cache.
func inCache(name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("where to keep the table: %w; set XDG_CACHE_HOME, or name a file", err)
	}
	return filepath.Join(cache, "grun", "tuned", name+".json"), nil
}

// Check returns an error if the file of a job's table does not exist; Off and ""
// name none. Load reads and checks the content.
func Check(path string) error {
	if path == "" || path == Off {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w; name a file that grun tune wrote, or %s", err, Off)
	}
	return nil
}
