// Package team holds the inner part of a team. Runtime shows it to window, rpipe and
// collectives.
//
//	window  rpipe  collectives
//	         |  Of, Team, Call, Stream
//	        team
//	       /    \
//	runtime      fabric
//	(fills it)   (peers, regions, health; it knows no teams)
//
// Lifecycle: runtime makes a [Team] for each of its teams and fills in the fields. Its own
// type embeds a [Handle], so that [Of] finds the inner part. [Team] keeps it until the team
// is freed.
//
// # Why a handle
//
// Users must neither see nor call the inner part. A method of runtime.Team that returns it would
// stand in go doc. A registry would be state of a package. The one method of [Handle] is not
// exported. Type runtime.Team has it by embedding, only this package can call it, and users cannot
// import this package.
package team
