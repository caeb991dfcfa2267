package gopgas_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinksInDocumentsResolve looks at links to files, not at links into the web.
func TestLinksInDocumentsResolve(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for _, doc := range files(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(prose(t, doc), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1]))
			require.NoErrorf(t, err, "%s links to %s", doc, m[1])
		}
	}
}

// TestNamesInDocumentsExist looks for each `package.Name`, `package.Type.name`
// and `Type.Name` of the documents in the code.
func TestNamesInDocumentsExist(t *testing.T) {
	known := declared(t)
	name := regexp.MustCompile("`([A-Za-z]+)\\.([A-Za-z]+)(\\.[A-Za-z]+)?`")
	checked := 0
	for _, doc := range files(t, ".md") {
		for _, m := range name.FindAllStringSubmatch(prose(t, doc), -1) {
			if !known[m[1]] {
				continue // of another module, or a file
			}
			checked++
			require.Truef(t, known[strings.Trim(m[0], "`")], "%s names %s, which the code does not have", doc, m[0])
		}
	}
	require.Greater(t, checked, 100, "the documents name little: is the pattern right?")
}

// TestDocumentsNameActors refuses sentences without a named actor, as CONTRIBUTING
// asks under Comments. Headings and quoted words may have any subject.
func TestDocumentsNameActors(t *testing.T) {
	vague := regexp.MustCompile(`(?m)(?:^|[\s(])(?:[Ww]hoever|[Nn]obody|[Ss]omebody|[Ee]verybody)\b|` +
		`(?:^|^ *[-*] |^ *\d+\. |[.:] )(?:Who|What|Whatever)\b`)
	require.True(t, vague.MatchString("Memory goes when nobody\nuses it."), "the pattern must be able to match")
	require.True(t, vague.MatchString("It waits. What comes is read."), "the pattern must be able to match")
	for _, doc := range files(t, ".md") {
		require.Emptyf(t, vague.FindAllString(prose(t, doc), -1), "%s: name the actor", doc)
	}
}

// TestTestsInDocumentsExist looks for each `TestName`, `FuzzName` and `ExampleName`
// in the tests, and for each name of a benchmark that stands in docs/rpipe.md in
// bench.
func TestTestsInDocumentsExist(t *testing.T) {
	known := map[string]bool{}
	for name := range declared(t) { // methods, such as TestNotify
		known[name[strings.LastIndex(name, ".")+1:]] = true
	}
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	for _, file := range files(t, "_test.go") {
		for _, m := range declaration.FindAllStringSubmatch(read(t, file), -1) {
			known[m[1]] = true
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|Example)\\w*)`")
	for _, doc := range files(t, ".md") {
		for _, m := range named.FindAllStringSubmatch(prose(t, doc), -1) {
			require.Truef(t, known[m[1]], "%s names %s, which there is not", doc, m[1])
		}
	}
	table := read(t, "bench/benchmark.go")
	for _, m := range regexp.MustCompile("`([a-z]+_[a-z_]+|nfp|switch)`").FindAllStringSubmatch(read(t, "docs/rpipe.md"), -1) {
		require.Contains(t, table, `"`+m[1]+`"`)
	}
}

// TestProgramsInDocumentsAreTested finds each ```go block of README, tutorial and collectives,
// line by line, in a file that the tests compile or run.
func TestProgramsInDocumentsAreTested(t *testing.T) {
	var sources []string
	for _, file := range files(t, ".go") {
		if strings.HasPrefix(file, "examples/") {
			sources = append(sources, flat(read(t, file)))
		}
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```")
	for _, doc := range []string{"README.md", "docs/tutorial.md", "docs/collectives.md"} {
		blocks := block.FindAllStringSubmatch(read(t, doc), -1)
		require.NotEmpty(t, blocks, doc)
	blocks:
		for _, m := range blocks {
			for _, source := range sources {
				if strings.Contains(source, flat(m[1])) {
					continue blocks
				}
			}
			t.Errorf("%s shows code that is in no example:\n%s", doc, m[1])
		}
	}
}

// TestLinesInThePageOnPipesAreTested finds each line of a ```go block of docs/rpipe.md
// in an example. The blocks leave out the checks of errors between the lines.
func TestLinesInThePageOnPipesAreTested(t *testing.T) {
	known := map[string]bool{}
	for _, file := range files(t, "_test.go") {
		if strings.HasPrefix(file, "examples/") {
			for line := range strings.Lines(read(t, file)) {
				known[strings.TrimSpace(line)] = true
			}
		}
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, "docs/rpipe.md"), -1)
	require.NotEmpty(t, blocks)
	for _, m := range blocks {
		for line := range strings.Lines(m[1]) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				require.Truef(t, known[line], "docs/rpipe.md shows a line that is in no example: %s", line)
			}
		}
	}
}

// TestReadmeListsTheEnvironment compares the README's variables with those
// that grun and its ranks know.
func TestReadmeListsTheEnvironment(t *testing.T) {
	variable := regexp.MustCompile(`GRUN_[A-Z_]+`)
	var known []string
	for _, file := range []string{"internal/bootstrap/env.go", "internal/tuned/tuned.go"} {
		found := variable.FindAllString(read(t, file), -1)
		require.NotEmpty(t, found, file)
		known = append(known, found...)
	}
	require.Subset(t, variable.FindAllString(read(t, "README.md"), -1), known)
	require.Subset(t, known, variable.FindAllString(read(t, "README.md"), -1))
}

// declared returns the names that the module declares: packages, types,
// Type.Method and Type.Field, and all of them behind "package.".
func declared(t *testing.T) map[string]bool {
	known := map[string]bool{}
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		pkg := parsed.Name.Name
		if pkg == "main" {
			continue
		}
		known[pkg] = true
		for _, decl := range parsed.Decls {
			for _, name := range names(decl) {
				known[pkg+"."+name] = true
				if owner, _, ok := strings.Cut(name, "."); ok {
					known[owner], known[name] = true, true
				}
			}
		}
	}
	return known
}

// names returns the names of a declaration, members as Type.member.
func names(decl ast.Decl) []string {
	var out []string
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		return []string{receiver(d.Recv.List[0].Type) + "." + d.Name.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				out = append(out, s.Name.Name)
				for _, m := range members(s.Type) {
					out = append(out, s.Name.Name+"."+m)
				}
			case *ast.ValueSpec:
				for _, id := range s.Names {
					out = append(out, id.Name)
				}
			}
		}
	}
	return out
}

func receiver(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

func members(e ast.Expr) (out []string) {
	var list *ast.FieldList
	switch x := e.(type) {
	case *ast.StructType:
		list = x.Fields
	case *ast.InterfaceType:
		list = x.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, id := range f.Names {
			out = append(out, id.Name)
		}
	}
	return out
}

// prose is a document without its blocks of code.
func prose(t *testing.T, doc string) string {
	return regexp.MustCompile("(?s)```.*?```").ReplaceAllString(read(t, doc), "")
}

// flat drops indentation and empty lines.
func flat(text string) string {
	var out bytes.Buffer
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

func read(t *testing.T, name string) string {
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}

// files returns the module's files with a suffix.
func files(t *testing.T, suffix string) []string {
	var out []string
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() && strings.HasSuffix(path, suffix) {
			out = append(out, path)
		}
		return err
	}))
	require.NotEmpty(t, out)
	return out
}
