// Package catalog publishes memory of devices to all ranks of a team, finds the nearest, and hands ranges of it
// out. No process is in charge: all ranks have the same list, and the books of an offer lie at its owner, which
// takes no part in calls of others.
//
//	c, err := catalog.Publish(ctx, world, catalog.Topology{}, catalog.Offer{Name: "pmem", Piece: piece})
//	lease, err := c.Allocate(ctx, 1<<20, catalog.Rules{Farthest: catalog.Switch}, "0000:03:00.0")
//	b, err := c.Open(lease)
//	err = b.Window.Put(ctx, b.Target, b.Index, data)
//	err = c.Free(ctx, lease)
//
// # Distance
//
// A client is a PCI device of this rank's host that will read or write the memory: a network card,
// a disk. The distance of an offer is the sum of its steps to all clients. Between PCI devices
// steps are as the kernel counts them. Memory of the host has 100, another NUMA node adds 100, and
// another host has 1000. Find sorts by it.
//
// # Leases
//
// A [Lease] is a value without pointers, which means the same at all ranks of the team: windows hold
// it and pipes carry it. Each rank that keeps one for itself takes a hold ([Catalog.Hold],
// [Catalog.Broadcast]); the memory is free again when all holds were freed. A rank that dies keeps its
// holds until [Catalog.Close].
//
// # Books
//
// The owner of an offer has an entry for each lease on it, four words: offset, length, holds and
// generation. A lease repeats the generation, so that a stale one is found out. A rank changes them
// under the lock of the books at the owner.
package catalog
