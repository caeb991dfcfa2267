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
// # Without a launcher
//
// The server may be in the process of rank 0 ([Env.Enter]). Then the end of a rank's
// connection counts as its death, since the kernel closes the connections of a process that
// ends. The loss of the server is the death of rank 0 ([LostError]). Rank 0 serves until all
// ranks have left ([Server.Drain]).
//
//	rank 0               rank 1                any rank
//	listen at Addr       dial Addr             listen, or dial if that fails
//	Server, Conn         Conn                  Conn: the server chooses the number
//	   \__________________|__________________/
//	              Conn.Start: cards of all ranks, or *MissingError
//	              Conn.Client
//
// # Lifecycle
//
// A rank dials, both ends prove that they know the job's secret, and the rank has
// joined ([Conn]). If it names a bound, all ranks must join within that time. A Conn
// becomes a [Client], which leaves by [Client.Close]; the server acknowledges that. A
// connection that ends without that goodbye is lost ([Hooks].Lost). A rank number
// joins once. A client asks now and then whether the server still answers. It
// ends the connection if no response comes within [Events].Silence.
//
// All connections to a server begin in dialer.dial, and all to listeners of this package in
// [Server.Serve].
//
// # Wire format
//
// All integers are little endian. A frame is a header and a body:
//
//	offset  size
//	0       4     bytes in the body
//	4       2     magic, "GP"
//	6       1     version, 4
//	7       1     kind
//	8             body
//
// A connection starts with four frames of fixed layout (nonces and proofs are
// 32 bytes each):
//
//	client  hello      rank u32 (all ones: any), size u32 (0: any), bound of the start
//	                   in milliseconds u32 (0: none), TLS u8, nonce
//	server  challenge  nonce
//	client  proof      HMAC-SHA256(secret, "gopgas client" hello challenge)
//	server  welcome    HMAC-SHA256(secret, "gopgas server" hello challenge rest),
//	                   rest: rank u32, size u32, hosted by rank 0 u8, status u8, reason (to the end)
//
// The server cuts, without a word, a client that cannot prove the secret. Both
// nonces are fresh, so that no recorded proof serves again; the roles differ, so
// that no proof can be reflected. Later frames carry no proof: without TLS, gopgas
// trusts the network between the hosts of a job not to read or alter a connection.
//
// A client may begin with a TLS handshake ([Joining].TLS), whose first byte is 22. All
// bytes above then travel within TLS, and the proofs cover keying material of the TLS
// connection, behind the role. Both ends take their keys from the job's secret (package
// identity). The server takes connections with and without TLS, but the ranks of one job
// must be alike.
//
// All frames after those share one body; the kind says what its fields mean:
//
//	4     rank: the addressee on the way to the server, the sender from it
//	1     code
//	8     id
//	2+n   name: key, service, cause
//	4+Σ   members, as runs
//	8+Σ   parts, each different one once
package bootstrap
