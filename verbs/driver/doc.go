// Package driver is the narrow waist of gopgas: the small interfaces that a
// provider implements and the vocabulary that it shares with package verbs.
//
//	verbs (checks, states, keys, errors)      written once
//	      |
//	driver.Provider / Context / MR / CQ / QP  1 to 6 methods each
//	   /    |     \      \
//	loop   shm    tcp    ibv                  who actually moves the bytes
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
// A completion with [Success] of a WRITE or SEND means that the source buffer
// may be reused and that no error will be reported for the request. A
// completion of a READ or an atomic means in addition that everything posted
// to the same QP before it has been applied to the target's memory; where the
// device says [WriteInfo.Applied], so does that of a WRITE.
//
// Aligned words of 64 bits are read and written whole, one at a time, by a WRITE
// of 8 bytes, and by a READ whose address and length are multiples of 8 and
// which is no longer than [WholeRead]. Where the device says
// [WriteInfo.Whole], the last word of a WRITE of aligned words, no longer
// than [WholeWrite], is written behind all others.
//
// The first request that fails moves its QP to [StateErr]; it completes with
// the cause and every later one with [Flushed], signalled or not.
//
// A provider checks at the target what only the target knows (key, bounds,
// rights), and validates whatever it reads from a wire or from shared memory.
// What the caller can be told at once (states, depths, local keys, lengths)
// package verbs has checked before a provider sees it.
//
// Providers are handed around as values; nothing registers itself.
package driver
