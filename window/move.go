package window

import (
	"github.com/gopgas/gopgas/internal/bulk"
	"github.com/gopgas/gopgas/internal/element"
)

// storeLong copies src, of at least bulk.Long bytes or of any length where time does not
// matter, to a target's mapped memory. It keeps long puts in the caches. Go's copy of 1 MiB
// goes around them on many processors, and on others if dst is not aligned to 16 bytes.
//
// Callers copy less themselves: Go's compiler inlines no generic function, and a call takes
// a third of the time of a put of 8 bytes.
func storeLong[T any](dst, src []T) { bulk.Store(element.Bytes(dst), element.Bytes(src)) }

// loadLong is storeLong for a get.
func loadLong[T any](dst, src []T) {
	d, s := element.Bytes(dst), element.Bytes(src)
	bulk.Copy(d, s[:len(d)], bulk.Cached(1, len(d)))
}
