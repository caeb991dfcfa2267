//go:build linux

// Package faults runs jobs on several hosts (internal/tools/hosts), and disturbs the
// hosts and the network between them.
//
//	host a     host b     host c          host r
//	ranks      ranks      ranks           the rendezvous, which is a part of the test
//	  +----------+----------+---------------+
//	           a switch of the test: delays, drops, cuts
//
// Each rank runs all kinds of operations at once, each on a team of its own. The test
// imposes a fault once every operation of every rank has made some steps. Then one table
// says which operations go on with right results, and which error each rank sees.
//
// A second table disturbs grun itself, which starts ranks from a laptop by ssh:
//
//	laptop          host1      host2      host3
//	grun, ssh --->  sshd       sshd       sshd         agents of grun, ranks
//
// No host can open a connection to the laptop. A row has the exit code, the line that grun
// prints, and its bound. Afterwards no process or file is left on any host.
//
// `make hosts` runs the tests. They need root, and skip without GOPGAS_HOSTS=1.
package faults
