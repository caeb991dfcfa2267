package main

import (
	"os"

	"github.com/gopgas/gopgas/internal/tuned"
)

// tunedVars has a job use the table that grun tune measured on this machine,
// unless the user says otherwise. The ranks check the table.
func tunedVars() []string {
	if os.Getenv(tuned.Env) != "" {
		return nil
	}
	here, err := tuned.Here()
	if err != nil {
		return nil // grun tune has measured nothing here
	}
	path, err := tuned.DefaultPath(here)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []string{tuned.Env + "=" + path}
}
