// Package pmi speaks the process management interface. By it, process managers such as Hydra,
// Slurm, Flux and grun tell the processes of a job their places. It has both ends of versions 1 and
// 2.
//
//	process            process manager
//	Client ----------- Server              one connection for each rank: PMI_FD, or PMI_PORT
//	   init            rank, size
//	   put             key-value space     at one place for all ranks
//	   fence           all ranks have put
//	   get             any rank's values
//	   finalize        the rank may end
//	   abort           all ranks end
//
// # Lifecycle
//
// [Open] finds the connection in the environment and begins with init. A process does so
// once. Its connection stays open to its end, so that the manager sees whether the process
// took leave ([Client.Finalize]). A [Server] has the key-value space of one job, and serves
// each connection in the goroutine that calls [Server.Serve].
//
// # Wire format
//
// The first messages of both versions are lines:
//
//	cmd=init pmi_version=1 pmi_subversion=1\n
//	cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n
//
// Version 1 goes on with such lines. A value ends at a blank. Version 2 goes on with frames:
// the length of a body in six characters, decimal and padded with blanks at either end, and
// the body:
//
//	32cmd=kvs-put;key=a0;value=10.0.0.1;
//
// A semicolon in a value is written twice there. A message has [MaxMessage] bytes at most,
// a key [MaxKey] and a value [MaxValue].
package pmi
