// Package chaos holds random programs that ranks run while contexts end and
// ranks die, and a model that knows the right answers.
//
//	seed -> trial: configuration, ranks, sizes
//	        each rank draws its own steps and contexts from seed and rank
//	        each step tells the model:  it took effect | it may have | it did not
//	        fence, then compare memory, sums, signals, messages with the model
//
// A trial of cancellations runs in this process. A fuse ends the context of a
// step at its k-th look, after some time, or before the step. The step may then
// return the context's error and nothing else. Later steps without a fuse must succeed:
// a cancellation harms no other operation, and no rank counts as dead.
//
// A trial of kills runs processes. Some ranks kill themselves at a random moment.
// The survivors may get errors that name a killed rank, and no further errors.
// Their own team and the memory they share must stay intact.
//
// `make chaos` runs 500 trials of each from a new seed, of which every third over tcp is
// encrypted; the flag -tls has all trials run over tcp, encrypted. A failure prints the
// command that repeats its trial. The seed fixes every choice of the program; the
// scheduler still orders the steps of different ranks.
package chaos
