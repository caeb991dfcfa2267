package main

import (
	"os"

	"github.com/gopgas/gopgas/internal/tuned"
)

// tunedVars has a job use what grun tune measured on this machine, unless the user
// says otherwise. Whether the table is any good, the ranks find out.
func tunedVars() []string {
	if os.Getenv(tuned.Env) != "" {
		return nil
	}
	here, err := tuned.Here()
	if err != nil {
		return nil // nothing can have been measured here
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
