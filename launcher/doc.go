// Package launcher starts the ranks of a job on this host, watches them and ends
// them. cmd/grun is flags around [Run].
//
//	Run
//	 |-- spawner    one locked thread that forks every rank
//	 |-- supervise  one loop: exits, joins, goodbyes, signals, timers
//	 |-- output     tags whole lines, or one file per rank
//	 |-- errors     the errors that end ranks: the same one of many ranks is printed once
//	 |-- reserved   memory that the ranks of this host commit, see memory.Reservations
//	 |-- bootstrap  the rendezvous, which is told of every death
//	 `-- guardians  two processes that clean up if this one is killed
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
// The kernel kills the ranks when the thread that forked them ends (Pdeathsig).
// It does not kill their children; the guardians do. These are processes of their
// own sessions and hold pipes. When a pipe ends, the launcher is gone and its
// guardian sweeps. The launcher sweeps itself at its normal end.
package launcher
