package tuned

import (
	"os"
	"sync"

	"github.com/gopgas/gopgas/internal/fabric"
)

// An Own is the table that the environment of a rank names.
type Own struct {
	Path  string
	Table *Table    // nil without one, and with one that the rank cannot use
	Mark  string    // identifies the content of Table, "" where that is nil
	Err   error     // why the rank cannot use the table
	Warn  sync.Once // of the warning that no team uses the table
}

// Close has nothing to end.
func (*Own) Close() {}

// Of returns the table of a rank, which reads its file once.
func Of(f *fabric.Fabric) (*Own, error) {
	a, err := f.Attach("tuned", func() fabric.Attachment { return NewOwn(os.Getenv(Env), os.Getenv(EnvTable)) })
	if err != nil {
		return nil, err
	}
	return a.(*Own), nil //nolint:forcetypeassert // nothing else has this name
}

// NewOwn reads a file, or its packed content, unless there is none to read.
func NewOwn(path, packed string) *Own {
	if path == "" || path == Off {
		return &Own{}
	}
	o := &Own{Path: path}
	o.Table, o.Mark, o.Err = Load(path, packed)
	return o
}
