//go:build linux

// Package launcher starts the ranks of a job on this host and others, watches them and
// ends them. cmd/grun is flags around [Run].
//
//	Run, the root
//	 |-- layout     which rank on which host, see package hosts
//	 |-- assemble   makes the agents of all hosts ready
//	 |-- supervise  one loop: exits, joins, goodbyes, lost hosts, signals, timers
//	 |-- output     tags whole lines, or one file per rank
//	 |-- errors     the errors that end ranks: the same one of many ranks is printed once
//	 |-- bootstrap  the rendezvous, which is told of every death
//	 |
//	 |-- agent of this host: part of this process; ranks get files themselves
//	 |     `-- rank 0, rank 1
//	 |-- ssh ------ agent of host b
//	 |                `-- rank 2, rank 3
//	 `-- ssh ------ agent of host c ------ ssh ------ agent of host d
//	                  `-- rank 4                        `-- rank 5
//
// Package agent runs the ranks of one host. The root decides everything: when the ranks
// start, which signal they get, how the job has ended.
//
// # Other hosts
//
// A [Backend] runs a few lines of sh on the host. They find this executable in a cache, by the hash
// of its bytes, or ask for it and store it there. They run it as the agent. A session (package
// wire) then carries all streams over the command's standard input and output: messages, standard
// files of the ranks, copies of programs, and the connections of the ranks to the rendezvous. So
// the hosts open no port to each other for grun, and the job's secret is on no command line and in
// no file.
//
// The root reaches fanOut hosts itself, and the others through agents, which run the
// command of the backend and pass its bytes on. The sessions with those hosts end at the
// root, too, so its list of agents is flat.
//
// No rank starts before all hosts are ready. A host is lost when its session ends, or
// when it is silent for the peer timeout. Its ranks are dead from then on.
//
// # Lifecycle of a job
//
//	running --failure--> grace --Grace over--> SIGTERM --KillWait over--> SIGKILL
//	   |                   |                      |                          |
//	   `-------------------+---- all ranks gone --+--------------------------'
//	                                 |
//	                               sweep
//
// A timeout, the end of the context and a program that does not start lead to
// SIGTERM at once. So do SIGTERM and SIGINT to the launcher, which it passes on
// unchanged. In every case SIGKILL follows KillWait after the first such signal.
//
// The first failure ends the job. The rendezvous announces the death at once, so
// that every survivor's wait returns with an error. The survivors get a short
// grace to end by themselves. The sweep kills every remaining process whose
// environment names this job.
//
// # At a terminal
//
// Ranks have process groups of their own, so the terminal's signals reach the
// launcher only, which passes them on. SIGTSTP stops the ranks and then this
// process; when this process goes on, it continues the ranks. The launcher reads
// the terminal for the ranks while it is in the foreground; in the background it
// waits.
//
// # Nothing stays behind
//
// When this process ends, so do the commands that reach other hosts. An agent ends its
// ranks when its stream ends. The guardians of an agent that is killed remove the rest: see
// package agent.
package launcher
