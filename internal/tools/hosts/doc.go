//go:build linux

// Package hosts makes several hosts on one machine, for tests. A host is a set of
// namespaces: network, processes, mounts, name. It has its own /dev/shm. So processes of
// two hosts can neither map each other's memory nor see each other.
//
//	this process (a test)
//	  Testbed
//	    Host "a"           Host "b"            namespaces, kept alive by one process each
//	      eth0 (TAP) ---+--- eth0 (TAP)
//	                    |
//	                 Network                   a switch in this process: delays, drops,
//	                                           limits and cuts frames, from a seed
//
// The switch is the test's process itself, not a bridge of the kernel. So links behave
// alike on every kernel, with or without netem. Subnets and names of interfaces belong to
// the hosts' namespaces. So concurrent tests cannot collide, and the machine's own
// network does not change.
//
// # Lifecycle
//
// [New] makes a testbed, and the end of the test removes it. Each host's first process
// ends when its input does. The kernel then kills all processes of the host and removes
// its network. The same happens after a SIGKILL of the test. A killed test leaves only
// the files of its temporary folder behind.
//
// # Requirements
//
// Testbeds need root, /dev/net/tun and the program ip of iproute2. [New] skips the test
// where one of them lacks, or fails it if GOPGAS_HOSTS=1 is set. [Testbed.SSH] needs sshd
// and ssh-keygen as well, [Testbed.Slurm] the programs of Slurm and munge.
package hosts
