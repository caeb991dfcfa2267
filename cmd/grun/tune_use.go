//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gopgas/gopgas/internal/tuned"
	"github.com/gopgas/gopgas/launcher"
	"github.com/gopgas/gopgas/launcher/hosts"
)

// tableFile returns the path of the table for jobs on these hosts, nil for this one.
func tableFile(list []hosts.Host) (string, error) {
	if elsewhere(list) {
		return tuned.HostsPath(namesOf(list))
	}
	here, err := tuned.Here()
	if err != nil {
		return "", err
	}
	return tuned.DefaultPath(here)
}

// elsewhere reports whether one of the hosts is not this one, and so may lack its files.
func elsewhere(list []hosts.Host) bool {
	return slices.ContainsFunc(list, func(h hosts.Host) bool { return !h.IsThis() })
}

// namesOf returns the names of hosts. This host gets the name by which other hosts know it.
func namesOf(list []hosts.Host) (names []string) {
	for _, h := range list {
		if h.IsThis() {
			h.Name, _ = os.Hostname()
		}
		names = append(names, h.Name)
	}
	return names
}

// tunedVars has a job use the table that grun tune measured on its hosts, unless the user
// says otherwise. The ranks check the table.
func (o *options) tunedVars(list []hosts.Host) ([]string, error) {
	if path := os.Getenv(tuned.Env); path != "" {
		return o.packed(path, list)
	}
	path, err := tableFile(list)
	if err != nil {
		return nil, nil //nolint:nilerr // grun tune has measured nothing there
	}
	if _, err := os.Stat(path); err != nil {
		return nil, nil //nolint:nilerr // likewise
	}
	vars, err := o.packed(path, list)
	if err != nil {
		fmt.Fprintf(os.Stderr, "grun: the table of grun tune for these hosts is not used: %v\n", err)
		return nil, nil
	}
	return append(vars, tuned.Env+"="+path), nil
}

// packed returns the variable with the content of a table, if hosts of the job may lack its
// file.
func (o *options) packed(path string, list []hosts.Host) ([]string, error) {
	if path == "" || path == tuned.Off || !elsewhere(list) {
		return nil, nil
	}
	if err := o.checkTable(path); err != nil {
		return nil, err
	}
	text, err := tuned.Pack(path, o.tableAt(path))
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", tuned.Env, path, err)
	}
	return []string{tuned.EnvTable + "=" + text}, nil
}

// tableAt returns the path of a table's file, which a rank reads from its working directory.
func (o *options) tableAt(path string) string {
	if path != "" && path != tuned.Off && !filepath.IsAbs(path) {
		return filepath.Join(o.wdir, path)
	}
	return path
}

// checkTable refuses a file that does not exist. The ranks read and check it.
func (o *options) checkTable(path string) error {
	if err := tuned.Check(o.tableAt(path)); err != nil {
		return fmt.Errorf("%s=%s: %w", tuned.Env, path, err)
	}
	return nil
}

// addTables gives programs the tables that their variables name.
func (o *options) addTables(programs []launcher.Program, list []hosts.Host) error {
	for i := range programs {
		p := &programs[i]
		for _, v := range slices.Clone(p.Env) {
			path, named := strings.CutPrefix(v, tuned.Env+"=")
			if !named {
				continue
			}
			vars, err := o.packed(path, list)
			if err != nil {
				return err
			}
			p.Env = append(p.Env, vars...)
		}
	}
	return nil
}
