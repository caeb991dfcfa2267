//go:build !amd64

package vector

// assembly is empty: this architecture has the plain form only.
var assembly table
