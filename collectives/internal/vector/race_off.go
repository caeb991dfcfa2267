//go:build !race

package vector

const race = false
