// Package driver is the narrow waist of gopgas: the small interfaces that a
// provider implements and the vocabulary that it shares with package verbs.
//
//	verbs (checks, states, keys, errors)      written once
//	      |
//	driver.Provider / Context / MR / CQ / QP  1 to 6 methods each
//	   /    |     \      \
//	loop   shm    tcp    ibv                  the movers of the bytes
//
// The model is reliable-connected ibverbs. Every method maps to libibverbs
// calls; docs/adr/0001-driver-maps-to-libibverbs.md has the table.
//
// # What a provider promises
//
// Work requests of one QP start in the order they were posted. WRITE, SEND
// and atomic requests take effect at the target in that order. A READ may be
// passed by later requests, and an atomic by later READs, unless those carry
// [Fence].
//
// A completion with [Success] of a WRITE or SEND says that the source buffer
// may be reused. The provider then reports no error for the request. A
// completion of a READ or an atomic says one thing more: all earlier posts to
// the same QP have been applied to the target's memory. Where the device has
// [WriteInfo.Applied], the completion of a WRITE says so too.
//
// A WRITE of 8 bytes writes an aligned word of 64 bits whole. A READ of up to
// [WholeRead] bytes reads aligned words whole, one at a time. Its address and
// length must then be multiples of 8. A device with [WriteInfo.Whole] writes the
// last word of a WRITE of aligned words last, up to [WholeWrite] bytes.
//
// The first request that fails moves its QP to [StateErr]; it completes with
// the cause and every later one with [Flushed], signaled or not.
//
// A provider checks key, bounds and rights at the target, which alone knows
// them. It validates everything that it reads from a wire or from shared
// memory. Package verbs checks states, depths, local keys and lengths before a
// provider sees a call.
//
// Providers are values that callers pass on; no provider registers itself.
package driver
