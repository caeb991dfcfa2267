// Package bootstrap lets the ranks of a job meet. It is a small authenticated
// message service between a launcher and its processes, for everything but the
// one-sided traffic.
//
//	rank 0      rank 1      rank 2        Client, one per rank
//	   \           |          /           Exchange, Call, Tell, Report, Abort
//	    +------- Server -----+            in grun, or in-process (Attach)
//	               |
//	             Hooks                    what the launcher learns
//
// The server keeps no state per call. It routes by rank, remembers the ranks that
// joined, left and died, and matches the contributions of exchanges. It never
// decides that a silent rank is dead: the launcher, which watches the processes,
// reports a death ([Server.RankDied]).
//
// # Lifecycle
//
// A rank dials, both ends prove that they know the job's secret, and the rank has
// joined. It leaves by [Client.Close], which the server acknowledges. A
// connection that ends without that goodbye is lost ([Hooks].Lost). A rank number
// joins once. A client asks now and then whether the server still answers. It
// ends the connection if no answer comes within [Events].Silence.
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
// The server cuts, without a word, a client that cannot prove the secret. Both
// nonces are fresh, so that no recorded proof serves again; the roles differ, so
// that no proof can be reflected. Later frames carry no proof: gopgas trusts the
// network between the hosts of a job not to alter a connection once it stands.
//
// All frames after those share one body; the kind says what its fields mean:
//
//	4     rank: the addressee on the way to the server, the sender from it
//	1     code
//	8     id
//	2+n   name: key, service, cause
//	4+4n  members
//	4+Σ   parts, each 4+n
package bootstrap
