package gopgas_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/gopgas/gopgas"

// A layer is a package, or several alike, with all that it may import of this
// module. Data flows down, and so do imports:
//
//	user programs, examples, bench
//	          collectives -> its internal board, message, vector
//	         rpipe   window
//	            runtime   internal/channel, below collectives
//	         internal/team
//	        internal/fabric
//	             verbs
//	          verbs/driver
//	     loop shm tcp ibv   faulty trace
//	          verbs/internal/wq
//
//	cmd/grun -> launcher -> internal/bootstrap <- runtime
type layer struct {
	packages string // a pattern of path.Match
	imports  string // patterns, apart by blanks
	because  string // completes "it may import nothing else, because"
}

// providers move bytes; wrappers stand in front of one.
const providers = "verbs/loop verbs/shm verbs/tcp verbs/ibv"

// picture is the architecture. The first row that matches a package counts.
var picture = []layer{
	{"internal/mutant", "",
		"switches know nothing"},
	{"internal/testwatch", "",
		"it compares counts that any package may keep"},
	{"internal/wait", "internal/mutant",
		"waiting is below everything that waits"},
	{"internal/blocks", "",
		"it knows places and bytes; both ends of a connection read its runs"},
	{"verbs/driver", "internal/wait internal/blocks",
		"the waist is shared by providers and verbs, and knows neither"},
	{"internal/cgroup", "",
		"it reads the kernel's files and knows none of its callers"},
	{"internal/memory", "verbs/driver internal/cgroup",
		"memory is made before it is registered"},
	{"internal/atomics", "verbs/driver internal/mutant",
		"it is arithmetic on words"},
	{"verbs/internal/wq", "verbs/driver internal/wait",
		"it is the states and queues of any provider's queue pairs, and knows neither providers nor verbs"},
	{"verbs/trace", "verbs/driver internal/wait",
		"it wraps any provider, so it knows none, and verbs calls it, not the other way round"},
	{"verbs/faulty", "verbs/driver verbs/internal/wq internal/wait",
		"it wraps any provider, so it knows none, and verbs calls it, not the other way round"},
	{"verbs/verbstest", "verbs verbs/driver internal/wait internal/memory internal/testwatch",
		"the suite is for any provider, so it knows none"},
	{"verbs/*", "verbs/driver verbs/internal/wq internal/wait internal/memory internal/mutant internal/atomics internal/blocks",
		"a provider implements driver and is called by verbs, which it does not know; no provider knows another"},
	{"verbs", "verbs/driver verbs/internal/wq internal/wait internal/mutant internal/blocks",
		"it checks for any provider and knows neither providers nor ranks"},
	{"internal/element", "",
		"it knows types and none of their users"},
	{"internal/arena", "verbs/driver internal/memory internal/mutant",
		"it hands out memory and knows none of its users"},
	{"internal/rmalloc", "internal/atomics",
		"it keeps books about memory and touches none"},
	{"internal/identity", "",
		"it turns a secret into a key and knows none of the connections"},
	{"internal/pmi", "",
		"it is the protocol of process managers, and knows neither ranks of this module nor grun"},
	{"internal/silence", "",
		"it watches a connection by its bytes, whatever they mean"},
	{"internal/bootstrap", "internal/identity internal/mutant internal/pmi internal/silence",
		"it is the protocol in which launcher and runtime meet, so it knows neither"},
	{"internal/bulk", "",
		"it copies bytes and knows nothing of whose they are"},
	{"internal/fabric", "verbs verbs/driver internal/arena internal/atomics internal/blocks internal/bulk internal/memory internal/wait internal/mutant",
		"it is handed its providers by runtime and imports none, and it knows no teams"},
	{"internal/team", "internal/fabric internal/arena internal/wait internal/mutant",
		"it is the inner part of a team, which runtime fills and does not show to users"},
	{"runtime", "internal/team internal/fabric internal/bootstrap internal/identity internal/arena internal/atomics internal/cgroup internal/memory internal/tuned internal/wait internal/mutant " +
		"verbs verbs/driver verbs/faulty verbs/trace " + providers,
		"it is the job as its ranks see it; how the job was started is the launcher's business, and the two meet in internal/bootstrap"},
	{"launcher/hosts", "",
		"it reads lists of hosts and knows none of its callers"},
	{"launcher/internal/wire", "internal/mutant internal/silence",
		"grun and its agents talk by it, and it knows neither"},
	{"launcher/internal/spawn", "internal/mutant",
		"it starts processes of any kind"},
	{"launcher/internal/tunnel", "launcher/internal/spawn",
		"it runs a command for its stream of bytes"},
	{"launcher/internal/agent", "launcher/internal/* internal/bootstrap internal/pmi internal/memory internal/cgroup",
		"it runs the ranks of one host, and knows neither the job's end nor the other hosts"},
	{"launcher/*", "launcher/hosts",
		"a backend gives a stream of bytes to a program on another host, and knows nothing of jobs"},
	{"launcher", "launcher/hosts launcher/internal/* internal/bootstrap internal/mutant internal/pmi",
		"it starts processes of any kind and does not know a rank's work; it meets runtime in internal/bootstrap"},
	{"internal/channel", "internal/fabric internal/atomics",
		"it moves messages between two ranks and knows neither teams nor algorithms"},
	{"device", "verbs/driver internal/memory",
		"it opens memory and knows none of its users"},
	{"device/cuda", "device",
		"it opens memory of GPUs, and is linked by programs that import it only"},
	{"device/catalog", "device window runtime internal/team",
		"it hands out published memory by public calls of windows, and asks the team which ranks share a host"},
	{"window", "device runtime internal/team internal/fabric internal/element internal/arena internal/atomics internal/blocks internal/bulk internal/wait internal/mutant verbs/driver",
		"it works over any fabric and imports no provider; rpipe stands beside it, not below"},
	{"rpipe", "runtime rpipe/internal/pipe rpipe/internal/overwindow internal/team internal/fabric internal/bulk internal/element internal/rmalloc internal/wait",
		"it is the ends of rpipe/internal/pipe with element types"},
	{"rpipe/internal/batch", "rpipe rpipe/internal/pipe rpipe/internal/turn runtime",
		"it is the common part of conveyors and active messages, and is made of pipes"},
	{"rpipe/fan", "rpipe rpipe/internal/pipe runtime internal/team internal/element internal/rmalloc internal/wait",
		"it reads the ends of many pipes by one summary, and writes one block to many"},
	{"rpipe/internal/pipe", "runtime rpipe/internal/turn internal/team internal/fabric internal/element internal/arena internal/rmalloc internal/bulk internal/atomics internal/mutant internal/wait",
		"it works over any peer memory, and makes that of the fabric; it imports neither providers nor window"},
	{"rpipe/internal/overwindow", "window rpipe/internal/pipe runtime internal/team internal/fabric internal/atomics internal/wait verbs/driver",
		"it is peer memory over a window's public calls; it alone stands on both window and pipes (ADR 8)"},
	{"rpipe/internal/pipetest", "rpipe rpipe/fan rpipe/internal/pipe runtime internal/* verbs/driver verbs/faulty verbs/trace",
		"it runs pipes for tests, and shows their inside to them"},
	{"rpipe/internal/*", "",
		"rpipe and its products share it, and it knows neither"},
	{"rpipe/netpipe", "rpipe rpipe/fan rpipe/internal/pipe rpipe/internal/turn runtime internal/team internal/fabric internal/wait",
		"it is made of pipes, and keeps beside the fabric which listeners its rank has dialed"},
	{"rpipe/farheap", "rpipe rpipe/internal/pipe rpipe/internal/turn runtime internal/team internal/element internal/rmalloc internal/wait",
		"it is one end's books about the memory of the other, and pipes lend it their ends"},
	{"rpipe/*", "rpipe rpipe/fan rpipe/internal/pipe rpipe/internal/batch rpipe/internal/turn runtime internal/element internal/wait",
		"a product is made of pipes, through calls that users have too"},
	{"collectives/internal/*", "internal/bulk internal/element internal/atomics internal/wait",
		"algorithms know bytes, operators and members, and none of their callers"},
	{"internal/tuned", "internal/team internal/fabric",
		"it is a file that grun writes and collectives read, and knows neither"},
	{"collectives/loggp", "collectives/internal/message",
		"it runs the algorithms and knows neither teams nor providers"},
	{"collectives", "collectives/internal/* runtime internal/team internal/channel internal/fabric internal/element internal/atomics internal/arena internal/tuned internal/wait",
		"it chooses among algorithms, which move bytes in mapped memory and through channels"},
	{"internal/testjob", "runtime launcher internal/bootstrap internal/team internal/fabric internal/mutant internal/testwatch verbs/driver verbs/faulty verbs/ibv",
		"it runs jobs for tests"},
	{"internal/tools/roce/*", "internal/tools/roce/wire internal/tools/roce/link", "it knows packets, and none of the devices that send them"},
	{"internal/tools/roce", "internal/tools/roce/wire internal/tools/roce/link", "tools are apart"},
	{"internal/tools/peerdma", "device/catalog",
		"it compares predictions of users' calls with the kernel"},
	{"internal/tools/*", "", "tools are apart"},
	{"cmd/grun", "launcher launcher/* runtime collectives internal/team internal/tuned internal/bootstrap internal/memory internal/wait verbs verbs/driver",
		"it is flags for the launcher, a doctor that asks runtime for the providers, and a tuner that measures collectives"},
	{"examples/internal/*", "",
		"it holds the common part of some examples, and nothing of this module"},
	{"examples/paramserver/model", "",
		"images and a network are arithmetic, and know no ranks"},
	{"examples/paramserver/*", "examples/paramserver/* collectives rpipe/netpipe window runtime",
		"it is a program's own package, and uses what users may"},
	{"examples/*", "examples/internal/* examples/paramserver/* device device/* collectives rpipe rpipe/* window runtime verbs verbs/driver",
		"an example shows what users can import"},
	{"litmus", "rpipe window runtime verbs verbs/driver verbs/faulty internal/wait internal/mutant",
		"it tests promises to users through the packages that users can import"},
	{"suites", "collectives window",
		"it says programs of other libraries by the calls that users have"},
	{"chaos", "collectives rpipe rpipe/* window runtime verbs/driver verbs/faulty internal/team internal/fabric",
		"it uses the packages that users can import, and looks at the heap through the fabric"},
	{"faults", "collectives rpipe window runtime internal/bootstrap",
		"it runs programs of users on several hosts, and stands in for their launcher"},
	{"bench", "bench/* collectives rpipe rpipe/* window runtime launcher verbs verbs/* internal/*",
		"nothing imports a benchmark but its own parts"},
	{"bench/*", "bench/* collectives collectives/* rpipe rpipe/* window runtime launcher verbs verbs/* internal/*",
		"nothing imports a benchmark but its own parts"},
}

// forTests are packages for tests and benchmarks: no program contains them.
const forTests = "verbs/verbstest internal/testjob internal/testwatch rpipe/internal/pipetest"

// system are the packages that may speak to the kernel by themselves.
const system = "internal/wait internal/memory internal/pmi internal/testjob internal/testwatch internal/tools/hosts internal/tools/peerdma internal/tools/roce/link verbs/shm verbs/tcp verbs/ibv runtime launcher launcher/internal/* cmd/grun bench bench/*"

// wrongArrow describes the mistake in an import of to by from, both without the
// module's path, or returns "".
func wrongArrow(from, to string) string {
	i := slices.IndexFunc(picture, func(l layer) bool { return matches(l.packages, from) })
	if i < 0 {
		return fmt.Sprintf("%s is not in the picture: give it a row in architecture_test.go", from)
	}
	if matches(picture[i].imports, to) && (matches(forTests, from) || !matches(forTests, to)) {
		return ""
	}
	return fmt.Sprintf("%s -> %s: %s may import %s and nothing else of this module, because %s", from, to, from,
		or(picture[i].imports, "nothing"), picture[i].because)
}

// matches: one of the patterns, apart by blanks, matches name.
func matches(patterns, name string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func TestImportsPointTheWayThatDataFlows(t *testing.T) {
	for _, p := range list(t) {
		from := short(p.ImportPath)
		require.NotEqual(t, p.ImportPath, from)
		for _, imported := range p.Imports {
			if to := short(imported); to != imported {
				if wrong := wrongArrow(from, to); wrong != "" {
					t.Error(wrong)
				}
			}
		}
	}
}

func TestEveryPackageIsInThePicture(t *testing.T) {
	for _, p := range list(t) {
		name := short(p.ImportPath)
		if !slices.ContainsFunc(picture, func(l layer) bool { return matches(l.packages, name) }) {
			t.Errorf("%s is not in the picture: give it a row in architecture_test.go", name)
		}
	}
}

// The rules must be able to fail.
func TestWrongArrowFindsImportsThatPointUp(t *testing.T) {
	for _, arrow := range []string{
		"verbs -> runtime", "verbs -> internal/fabric", "verbs -> verbs/loop", "verbs/driver -> verbs",
		"verbs/tcp -> verbs", "verbs/shm -> verbs", "verbs/internal/wq -> verbs", "verbs/internal/wq -> verbs/loop", "verbs/loop -> verbs/shm", "verbs/ibv -> runtime", "verbs/faulty -> verbs/loop",
		"internal/fabric -> verbs/shm", "internal/fabric -> runtime", "internal/fabric -> internal/team", "internal/team -> runtime", "internal/wait -> verbs/driver",
		"launcher -> runtime", "runtime -> launcher", "launcher -> launcher/ssh", "launcher/ssh -> launcher", "launcher/internal/agent -> launcher/hosts", "internal/bootstrap -> runtime", "internal/bootstrap -> launcher",
		"window -> verbs/shm", "window -> verbs/tcp", "window -> rpipe", "runtime -> window",
		"window -> cmd/grun", "runtime -> examples/hello", "runtime -> bench", "launcher -> cmd/grun",
		"runtime -> internal/testjob", "bench -> internal/testwatch", "bench -> internal/testjob", "examples/hello -> internal/fabric", "examples/hello -> internal/team", "unheard/of -> verbs",
		"collectives -> verbs/shm", "collectives -> rpipe", "internal/channel -> internal/team", "runtime -> collectives", "rpipe -> collectives", "rpipe -> rpipe/gochan", "rpipe/gochan -> internal/fabric", "collectives/internal/message -> runtime",
		"collectives/internal/board -> collectives/internal/message",
	} {
		from, to, _ := strings.Cut(arrow, " -> ")
		require.Contains(t, wrongArrow(from, to), from, arrow)
	}
	for _, arrow := range []string{
		"verbs -> verbs/driver", "verbs/tcp -> internal/wait", "runtime -> verbs/tcp", "window -> runtime",
		"cmd/grun -> launcher", "examples/hello -> window", "internal/testjob -> launcher", "internal/testjob -> internal/testwatch",
	} {
		from, to, _ := strings.Cut(arrow, " -> ")
		require.Empty(t, wrongArrow(from, to), arrow)
	}
}

// listed holds the output of go list about a package.
type listed struct {
	ImportPath string
	Imports    []string
}

// list returns the module's packages as go list sees them.
func list(t *testing.T) (all []listed) {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Imports", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for d := json.NewDecoder(out); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if short(p.ImportPath) != p.ImportPath {
			all = append(all, p)
		}
	}
	require.NoError(t, cmd.Wait())
	require.NotEmpty(t, all)
	return all
}

// short returns a package's path within the module. It changes neither other
// paths nor that of the root, which holds this test only.
func short(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

func TestUnsafeIsConfinedToFilesThatSayIt(t *testing.T) {
	eachImport(t, func(file, imported string) {
		name := strings.TrimSuffix(strings.TrimSuffix(path.Base(file), ".go"), "_test")
		if imported == "unsafe" && !strings.HasSuffix(name, "_unsafe") {
			t.Errorf("%s imports unsafe: move its use to a few lines in a file named *_unsafe.go", file)
		}
	})
}

func TestSystemCallsAreConfined(t *testing.T) {
	eachImport(t, func(file, imported string) {
		if imported == "golang.org/x/sys/unix" && !matches(system, path.Dir(file)) && !strings.HasSuffix(file, "_test.go") {
			t.Errorf("%s imports %s: only %s speak to the kernel by themselves", file, imported, system)
		}
	})
}

// TestNothingNeedsCgo: a build needs a C compiler only with the tag ibverbs.
func TestNothingNeedsCgo(t *testing.T) {
	eachImport(t, func(file, imported string) {
		if imported != "C" {
			return
		}
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		if path.Dir(file) != "verbs/ibv" || !strings.HasPrefix(string(source), "//go:build ibverbs\n") {
			t.Errorf("%s imports C: the module builds without a C compiler, but for verbs/ibv behind //go:build ibverbs", file)
		}
	})
}

func TestOnlyOneFileListsTheProviders(t *testing.T) {
	eachImport(t, func(file, imported string) {
		if path.Dir(file) != "runtime" || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(path.Base(file), "providers") {
			return
		}
		if matches(providers, short(imported)) {
			t.Errorf("%s imports %s: runtime/providers.go alone lists the providers", file, imported)
		}
	})
}

// eachImport visits all imports of all files of the module, tests and files for
// other build tags too. Folders with a module of their own are apart.
func eachImport(t *testing.T, visit func(file, imported string)) {
	t.Helper()
	files := 0
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if name != "." && (err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		files++
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			visit(filepath.ToSlash(name), imported)
		}
		return nil
	}))
	require.Greater(t, files, 50, "the module's files were not found")
}
