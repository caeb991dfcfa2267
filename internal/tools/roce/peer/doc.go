//go:build linux

// Package peer is the other end of a device's reliable connections of RoCE v2: it keeps the
// protocol, or departs from it as a test demands.
//
//	the device under test  <-- veth -->  Link -> Peer -> Endpoint, one for each queue pair
//
// A [Peer] reads all frames of an interface and responds to those that are for its address. Each of its
// [Endpoint]s is a responder with memory of its own: it applies WRITEs, SENDs, READs and
// atomics in the order of their packet numbers, and each of them once. It sends a NAK for a missing
// packet, and responds to a repeated one again. It sends no request by itself; a test sends packets of its own through [Endpoint.Send].
//
// A [Conduct] departs from this. Each departure is one that a broken device, a broken
// network or an attacker can show. A device sees no other difference to a right
// peer.
//
// The package is for tests. It has no retransmission, no congestion control and one size of
// packets.
package peer
