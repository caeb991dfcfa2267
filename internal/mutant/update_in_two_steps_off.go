//go:build !mutant_update_in_two_steps

package mutant

// UpdateInTwoSteps: an atomic loads its word and stores the result later.
const UpdateInTwoSteps = false
