//go:build !amd64

package vector

// They are empty: this architecture has the plain form only.
var assembly, locatedAssembly table
