// Package bootstrap is where the ranks of a job meet: a small authenticated
// message service between a launcher and the processes it started, used for
// everything that happens before, beside and after the one-sided traffic.
//
//	rank 0      rank 1      rank 2        Client, one per rank
//	   \           |          /           Exchange, Call, Tell, Report, Abort
//	    +------- Server -----+            in grun, or in-process (Attach)
//	               |
//	             Hooks                    what the launcher learns
//
// The server keeps no state per call: it routes by rank, remembers who joined,
// left and died, and matches the contributions of exchanges. It never decides
// that a silent rank is dead; whoever watches the processes says so
// ([Server.RankDied]).
//
// # Lifecycle
//
// A rank dials, both ends prove that they know the job's secret, and the rank
// has joined. It leaves by [Client.Close], which the server acknowledges. A
// connection that ends without that goodbye is lost ([Hooks].Lost). A rank
// number joins once. A client asks now and then whether the server still answers,
// and ends the connection when it does not for [Events].Silence.
//
// # Wire format
//
// All integers are little endian. A frame is a header and a body:
//
//	offset  size
//	0       4     bytes in the body
//	4       2     magic, "GP"
//	6       1     version, 2
//	7       1     kind
//	8             body
//
// A connection starts with four frames of fixed layout (nonces and proofs are
// 32 bytes each):
//
//	client  hello      rank u32, client nonce
//	server  challenge  server nonce
//	client  proof      HMAC-SHA256(secret, "gopgas client" client-nonce server-nonce rank)
//	server  welcome    HMAC-SHA256(secret, "gopgas server" client-nonce server-nonce rank rest),
//	                   rest: size u32, status u8, reason (to the end)
//
// Whoever cannot prove the secret is cut off without a word. Both nonces are
// fresh, so that nothing recorded earlier proves anything; the roles differ, so
// that no proof can be reflected. Later frames are not authenticated one by
// one: the network between the hosts of a job is trusted not to alter a
// connection once it stands.
//
// All frames after those share one body, whose fields mean what the kind says:
//
//	4     rank: the addressee on the way to the server, the sender from it
//	1     code
//	8     id
//	2+n   name: key, service, cause
//	4+4n  members
//	4+Σ   parts, each 4+n
package bootstrap
