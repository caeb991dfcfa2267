//go:build mutant_flag_before_data

package mutant

// FlagBeforeData: a notification's flag is stored before its data.
const FlagBeforeData = true
