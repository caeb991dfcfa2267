// Package pipe holds the two ends of a pipe without element types, and the peer memory that
// they stand on. Package rpipe gives them element types; the packages beside it are made
// of them.
//
//	Writer                                      Reader
//	shadow heap, tags of freed ranges   <-----  announcements, credits
//	blocks, notification flags          ----->  heap, ring of notifications
//	       PeerMemory: data and flags in the memory of the peer
//	       Directory: the two ends find each other by name
//	       Layer: makes both, on the fabric or over a window
//
// The Registry of a rank opens ends and looks after closed ends until their peers put
// nothing more there.
package pipe
