//go:build linux

package agent

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// stagePrefix begins the names of all directories for programs.
const stagePrefix = "gopgas-stage-"

// stageDir returns the directory for programs that grun sends. Its name is the job's, so
// that guardians know it before it exists.
func stageDir(plan wire.Plan) string {
	return filepath.Join(os.TempDir(), stagePrefix+plan.JobID+"-"+filepath.Base(plan.Host))
}

// stagedPath returns the path of a program that grun sends.
func stagedPath(plan wire.Plan, program int) string {
	return filepath.Join(stageDir(plan), strconv.Itoa(program), filepath.Base(plan.Programs[program].Name))
}

// stage writes a program of size bytes from r.
func stage(plan wire.Plan, program int, r io.Reader, size int64) error {
	if program < 0 || program >= len(plan.Programs) || !plan.Programs[program].Staged {
		return fmt.Errorf("%w: program %d", wire.ErrWire, program)
	}
	path := stagedPath(plan, program)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return stageError(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return stageError(err)
	}
	n, err := io.Copy(f, io.LimitReader(r, size))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return stageError(err)
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("copy of the program: %s does not let programs run: set TMPDIR there to a directory that does", os.TempDir())
	}
	return nil
}

func stageError(err error) error {
	return fmt.Errorf("copy of the program: %w; make room there, or set TMPDIR there to a directory with room", err)
}
