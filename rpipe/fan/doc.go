// Package fan reads from many pipes through one handle, and writes one block to many
// readers. [In] is a fan-in, [Out] a fan-out, and a [Mesh] is a fan-in beside pipes to all
// ranks. The peers of both use package rpipe.
//
//	rank 1: rpipe.Writer  ---\                          /--->  rank 1: rpipe.Reader
//	rank 2: rpipe.Writer  ----> rank 0: fan.In, fan.Out ---->  rank 2: rpipe.Reader
//	rank 3: rpipe.Writer  ---/                          \--->  rank 3: rpipe.Reader
//
// A handle is opened, used by one goroutine at a time, and closed. It connects to each
// peer on first use. The options are those of package rpipe, as the peers give the same
// ones.
package fan
