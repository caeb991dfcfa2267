// The frame of the programs here. It measures as bench/series.go does: rank 0 announces the
// operations of each batch, calibrates batches for a while, then takes samples.
//
//	PROGRAM [-b BUFFERS] [-l] SECONDS SIZE[,SIZE...] NAME...
//
// -b uses so many buffers in turn. -l has a barrier follow each collective call. A program
// prints lines like bench -json does. It defines the functions that are only declared here.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, MAX_BATCH = 1 << 20, SAMPLES = 1 << 15, WINDOW = 64, RANDOM_WORDS = 1 << 20 };

static const double BATCH_TIME = 100e-6;
static const double FIRST_WARM_UP = 20e-3; // the first milliseconds of a job are slower than all later ones

enum { PAIRS = -1 }; // as many senders as pairs of ranks

struct task {
	const char *name, *unit; // us, or MB/s
	double factor;           // of seconds, for us: 1e6, or 0.5e6 one way
	int sized;               // runs at each size, or at 8 bytes
	int batch;               // the least number of operations, if not 1
	int together;            // all ranks work: the time lasts from the first begin to the last end
	int senders;             // ranks whose operations count together, if not 1, or PAIRS
	void (*prepare)(void);
	void (*run)(long n);
};

static int rank, ranks, size, buffers = 1, lockstep;
static size_t each, all, at; // bytes of a buffer and of all buffers; offset of the next one

static void told(long *n);                     // rank 0's n reaches all ranks
static void meet(void);                        // a barrier
static double last(double began, double ended); // at rank 0: from the first begin to the last end
static int set_up(const struct task *t);       // for size; returns 0 if the task does not apply
static void tear_down(void);

// The most operations of a batch. coll.c has as many as inputs for long messages.
static long most = MAX_BATCH;

// Samples of one operation each, 0: as many samples as the time allows. team.c has a few.
static int few;

static double now(void) {
	struct timespec s;
	clock_gettime(CLOCK_MONOTONIC, &s);
	return s.tv_sec + s.tv_nsec / 1e9;
}

// Changes a byte of every cache line, as a program with new data does.
static inline void rewrite(void *mem, size_t bytes) {
	for (size_t i = 0; i < bytes; i += LINE)
		((volatile char *)mem)[i]++;
}

static inline void look(const void *mem, size_t bytes) {
	for (size_t i = 0; i < bytes; i += LINE)
		(void)((const volatile char *)mem)[i];
}

// Returns the index of a word, by Marsaglia's xorshift.
static inline size_t next_random(void) {
	static uint64_t x = 1;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x % RANDOM_WORDS;
}

// Returns the offset of the next buffer.
static inline size_t next_buffer(void) {
	size_t here = at;
	at += each;
	if (at == all)
		at = 0;
	return here;
}

static double batch(const struct task *t, long n) {
	if (t->prepare)
		t->prepare();
	meet();
	double began = now();
	t->run(n);
	double ended = now();
	if (!t->together)
		return ended - began;
	meet();
	return last(began, ended);
}

// Rank 0 announces a batch; 0 ends the series.
static double announced(const struct task *t, long n) {
	told(&n);
	return n > 0 ? batch(t, n) : 0;
}

static int ascending(const void *a, const void *b) {
	double d = *(const double *)a - *(const double *)b;
	return (d > 0) - (d < 0);
}

static double value(const struct task *t, double seconds) {
	if (t->factor)
		return seconds * t->factor;
	return size / seconds / 1e6;
}

// Takes samples. A batch much shorter than the calibrated ones shows that a disturbance cut
// the calibration short: the batch grows and all samples are taken again.
static void measure(const struct task *t, double seconds) {
	static double samples[SAMPLES];
	static int warmed;
	int taken = 0;
	long n = t->batch ? t->batch : 1;
	double warm_up = warmed || seconds / 8 > FIRST_WARM_UP ? seconds / 8 : FIRST_WARM_UP;
	warmed = 1;
	while (taken < few)
		samples[taken++] = value(t, announced(t, 1));
	for (double end = now() + warm_up; !few;) {
		double took = announced(t, n);
		if (took < BATCH_TIME && n < most)
			n = 2 * n < most ? 2 * n : most;
		else if (now() >= end)
			break;
	}
	for (double end = now() + seconds; !few && taken < SAMPLES && (taken == 0 || now() < end);) {
		double took = announced(t, n);
		if (took < BATCH_TIME / 2 && n < most) {
			n = 2 * n < most ? 2 * n : most;
			taken = 0;
			continue;
		}
		samples[taken++] = value(t, took / n / (t->senders == PAIRS ? ranks / 2 : t->senders ? t->senders : 1));
	}
	announced(t, 0);
	qsort(samples, taken, sizeof *samples, ascending);
	printf("{\"benchmark\":\"%s\",\"ranks\":%d,\"size\":%d,\"unit\":\"%s\",\"min\":%g,\"median\":%g,\"p99\":%g}\n",
		t->name, ranks, size, t->unit, samples[0], samples[taken / 2], samples[(long)taken * 99 / 100]);
	fflush(stdout);
}

static void run(const struct task *t, int bytes, double seconds) {
	size = bytes;
	each = buffers == 1 ? (size_t)size : ((size_t)size + LINE - 1) / LINE * LINE;
	all = each * buffers;
	at = 0;
	most = MAX_BATCH;
	if (!set_up(t))
		return;
	if (rank == 0)
		measure(t, seconds);
	else
		for (long n = 1; n > 0;) { // the batches that rank 0 announces
			told(&n);
			if (n > 0)
				batch(t, n);
		}
	tear_down();
}

// Runs the named tasks; returns the exit code.
static int run_all(int argc, char **argv, const struct task *tasks, size_t count) {
	int option;
	while ((option = getopt(argc, argv, "+b:l")) != -1)
		if (option == 'b')
			buffers = atoi(optarg);
		else if (option == 'l')
			lockstep = 1;
		else
			return 2;
	if (argc - optind < 3 || buffers < 1) {
		if (rank == 0)
			fprintf(stderr, "usage: [-b BUFFERS] [-l] SECONDS SIZE[,SIZE...] NAME...\n");
		return 2;
	}
	char *seconds = argv[optind], *sizes = argv[optind + 1];
	for (int a = optind + 2; a < argc; a++)
		for (size_t i = 0; i < count; i++) {
			if (strcmp(argv[a], tasks[i].name))
				continue;
			for (char *s = sizes; *s; s += *s == ',') {
				int bytes = (int)strtol(s, &s, 10);
				run(&tasks[i], tasks[i].sized ? bytes : 8, strtod(seconds, NULL));
				if (!tasks[i].sized)
					break;
			}
		}
	return 0;
}
