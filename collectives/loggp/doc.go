// Package loggp replays the algorithms of collective calls in virtual time, for any number of
// ranks. It runs the functions of package message, as a job does. Its transport moves no bytes and
// counts time by the LogGOPS model:
//
//	L  latency of a message, after its sender handed it over
//	o  processor time of a message at its sender, and at its receiver
//	g  least time between two messages of one sender
//	G  time of a byte on the way
//	O  processor time of a byte at its sender, and at its receiver
//	S  longest message that a sender sends before the receiver waits for it
//
// Ranks of one host reach each other by one [Link], ranks of different hosts by another. All
// ranks of a host share its link to other hosts, in the order of virtual time.
//
//	r0: [o]----------- L + G·bytes ----------->
//	r1:                                        [o]  received
//
// The model has no noise, no congestion inside the network, and no time for an algorithm's own
// copies. Every rank begins at time 0.
//
// (Alexandrov, Ionescu, Schauser and Scheiman, "LogGP: Incorporating Long Messages into the
// LogP Model", 1995; Hoefler, Schneider and Lumsdaine, "LogGOPSim: Simulating Large-Scale
// Applications in the LogGOPS Model", 2010.)
package loggp
