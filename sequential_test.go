package gopgas_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// concurrent are the packages by which Go code shares memory among goroutines.
const concurrent = "sync sync/atomic golang.org/x/sync/errgroup github.com/gopgas/gopgas/internal/testjob"

// TestPackagesOutsideTheRaceRunStartNoGoroutines reads the Makefile's list of packages that
// make race leaves out.
func TestPackagesOutsideTheRaceRunStartNoGoroutines(t *testing.T) {
	list := regexp.MustCompile(`(?m)^SEQUENTIAL = ((?:.*\\\n)*.*)$`).FindStringSubmatch(read(t, "Makefile"))
	require.NotNil(t, list)
	folders := strings.Fields(strings.ReplaceAll(list[1], "\\\n", " "))
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		files, err := filepath.Glob(folder + "/*.go")
		require.NoError(t, err)
		require.NotEmpty(t, files, folder)
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			require.Empty(t, concurrency(file), "%s: let make race test this package", name)
		}
	}
}

func TestConcurrencyIsSeen(t *testing.T) {
	for _, source := range []string{"import \"sync\"", "func f() { go f() }", "func f(t *testing.T) { t.Parallel() }"} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+source, parser.SkipObjectResolution)
		require.NoError(t, err)
		require.NotEmpty(t, concurrency(file), source)
	}
}

// concurrency describes the first thing in a file that may run two goroutines at a time, or
// returns "".
func concurrency(file *ast.File) (found string) {
	for _, spec := range file.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err == nil && matches(concurrent, imported) {
			return "it imports " + imported
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = "it has a go statement"
		case *ast.SelectorExpr:
			if n.Sel.Name == "Parallel" {
				found = "it has parallel tests"
			}
		}
		return found == ""
	})
	return found
}
