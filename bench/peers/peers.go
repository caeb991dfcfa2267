// Package peers has programs in C that do the work of bench's tasks over MPI, over OpenSHMEM and by
// bare loads, stores and sockets. The command bench/compare runs them beside gopgas.
//
//	c/rma.c     one-sided operations over MPI
//	c/coll.c    collective calls over MPI
//	c/team.c    new communicators over MPI
//	c/shmem.c   one-sided operations over OpenSHMEM
//	c/bare.c    the limits of the machine, without a library
//	c/bench.h   their frame: options, batches, samples, output
//	c/over_mpi.h   its parts over MPI
//
// A [Config] is one library in one configuration that can be its best. Compare runs all
// and takes the best for each figure. The programs need Debian's packages of the libraries;
// [Build] says which are missing.
package peers

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed c/bench.h c/over_mpi.h c/rma.c c/coll.c c/team.c c/shmem.c c/bare.c
var sources embed.FS

// A compiler makes the programs of one library.
type compiler struct {
	command  string
	header   string // of the library; some packages have a compiler without it
	library  string // the suffix of its programs
	packages string // Debian's
	programs []string
}

// compilers returns the compilers of the peers' programs, with their header, system, packages and
// programs.
func compilers() []compiler {
	return []compiler{
		{"gcc", "stdio.h", "", "gcc libc6-dev", []string{"bare"}},
		{"mpicc.openmpi", "mpi.h", "openmpi", "openmpi-bin libopenmpi-dev", []string{"rma", "coll", "team"}},
		{"mpicc.mpich", "mpi.h", "mpich", "mpich libmpich-dev", []string{"rma", "coll", "team"}},
		{"oshcc", "shmem.h", "oshmem", "openmpi-bin libopenmpi-dev", []string{"shmem"}},
	}
}

// Build compiles all programs into dir for which this machine has a compiler. It returns
// the Debian packages that the others need, and the compiler's words if one fails.
func Build(ctx context.Context, dir string) (missing []string, err error) {
	files, err := fs.Sub(sources, "c")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return nil, err
	}
	for _, c := range compilers() {
		if !c.works(ctx) {
			if !slices.Contains(missing, c.packages) {
				missing = append(missing, c.packages)
			}
			continue
		}
		for _, p := range c.programs {
			cmd := exec.CommandContext(ctx, c.command, "-O2", "-Wall", "-Wextra", "-Werror", "-o", program(dir, p, c.library), p+".c")
			cmd.Dir = dir
			if said, err := cmd.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%s %s.c: %w: %s", c.command, p, err, bytes.TrimSpace(said))
			}
		}
	}
	return missing, nil
}

// works reports whether this machine has the compiler and the header of its library.
func (c *compiler) works(ctx context.Context) bool {
	cmd := exec.CommandContext(ctx, c.command, "-E", "-x", "c", "-")
	cmd.Stdin = strings.NewReader("#include <" + c.header + ">\n")
	return cmd.Run() == nil
}

// program returns the path of a program made with a library.
func program(dir, name, library string) string {
	if library != "" {
		name += "." + library
	}
	return filepath.Join(dir, name)
}

// A Job is one run of a program.
type Job struct {
	Dir      string // of Build
	Program  string // rma, coll, team, shmem or bare
	Provider string // shm or tcp
	Ranks    int
	Cores    int
	Bound    bool // to a core each
	Blocks   bool // where ranks outnumber cores: those with neighboring numbers share one, as under grun
	Args     []string
}

// crowded reports whether ranks outnumber cores. The libraries' launchers bind none of them then.
func (j *Job) crowded() bool { return j.Ranks > j.Cores }

// inBlocks returns the start of a rank's command line that binds it to its core. Each launcher tells a rank its number by a
// variable of its own.
func (j *Job) inBlocks() []string {
	if !j.Blocks {
		return nil
	}
	core := fmt.Sprintf("$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} * %d / %d))", j.Cores, j.Ranks)
	return []string{"sh", "-c", `exec taskset -c "` + core + `" "$0" "$@"`}
}

// A Config is a library in one configuration.
type Config struct {
	Name     string
	Limit    bool // it is no library: the limit of the machine
	programs []string
	library  string
	over     []string // providers of gopgas whose way to the peer it has
	command  func(j *Job) []string
}

// Runs reports whether the configuration has the program, for a provider and a number of
// ranks, and was built in dir.
func (c *Config) Runs(dir, name, provider string, ranks int) bool {
	if !slices.Contains(c.programs, name) || !slices.Contains(c.over, provider) || c.Limit && ranks != 2 {
		return false
	}
	_, err := os.Stat(program(dir, name, c.library))
	return err == nil
}

// Command returns the command line of a job.
func (c *Config) Command(j *Job) []string {
	return slices.Concat(c.command(j), j.inBlocks(), []string{program(j.Dir, j.Program, c.library)}, c.own(j), j.Args)
}

// own returns options that only the program of limits has; it needs no launcher.
func (c *Config) own(j *Job) (args []string) {
	if !c.Limit {
		return nil
	}
	if j.Provider == "tcp" {
		args = append(args, "-s")
	}
	if j.Bound {
		args = append(args, "-p")
	}
	return args
}
