// Package rpipe is one-sided messaging without explicit synchronization.
package rpipe
