// Ping-pong between two pinned processes in the layout of bench/floor_pipe.go, and
// so of a pipe on mapped memory: each message is a block of a heap, filled in place
// in the reader's memory, and a flag in a ring that names the block.
//
//	pingpong SIZE SECONDS
//
// It prints one line like bench -json does. scripts/pingpong.sh compares the two.

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, WIDTH = 64, BLOCKS = 8, HEAP = 1 << 20, POLLS = 10000, SAMPLES = 1 << 15 };

// A direction is a ring and a heap behind it.
struct direction {
	_Atomic uint64_t ring[WIDTH];
	char heap[];
};

// An end is a process's count of the messages one way.
struct end {
	struct direction *d;
	uint64_t count;
};

static size_t size, stride, heap;

static void fail(const char *what) {
	perror(what);
	exit(1);
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void pin(int cpu) {
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		fail("sched_setaffinity");
}

static void send_block(struct end *e) {
	uint64_t at = e->count % (heap / stride) * stride;
	_Atomic uint64_t *flag = &e->d->ring[e->count % WIDTH];
	for (size_t i = 0; i < size; i += LINE)
		((volatile char *)e->d->heap)[at + i]++;
	e->count++;
	atomic_store(flag, e->count << 32 | at);
}

static char receive_block(struct end *e) {
	_Atomic uint64_t *flag = &e->d->ring[e->count % WIDTH];
	uint64_t v;
	for (int polls = 1; (v = atomic_load(flag)) < (e->count + 1) << 32; polls++)
		if (polls % POLLS == 0)
			sched_yield();
	uint64_t at = (uint32_t)v;
	char sum = 0;
	for (size_t i = 0; i < size; i += LINE)
		sum += ((volatile char *)e->d->heap)[at + i];
	e->count++;
	return sum;
}

static struct direction *share(void) {
	size_t n = sizeof(struct direction) + heap;
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

static double batch(struct end *out, struct end *in, long n) {
	double began = now();
	for (long i = 0; i < n; i++) {
		send_block(out);
		receive_block(in);
	}
	return now() - began;
}

static int ascending(const void *a, const void *b) {
	double d = *(const double *)a - *(const double *)b;
	return (d > 0) - (d < 0);
}

static void measure(struct end *out, struct end *in, double seconds) {
	static double samples[SAMPLES];
	long n = 1;
	while (batch(out, in, n) < 100e-6 && n < 1 << 20)
		n *= 2;
	int taken = 0;
	for (double end = now() + seconds; taken < SAMPLES && (taken == 0 || now() < end); taken++)
		samples[taken] = batch(out, in, n) / n / 2 * 1e6;
	qsort(samples, taken, sizeof *samples, ascending);
	printf("{\"benchmark\":\"pingpong_c\",\"ranks\":2,\"size\":%zu,\"unit\":\"us\",\"min\":%g,\"median\":%g,\"p99\":%g}\n",
		size, samples[0], samples[taken / 2], samples[taken * 99 / 100]);
}

int main(int argc, char **argv) {
	if (argc != 3 || (size = strtoul(argv[1], NULL, 10)) < 1 || size > 1 << 30) {
		fprintf(stderr, "usage: pingpong SIZE SECONDS\n");
		return 2;
	}
	stride = (size + LINE - 1) / LINE * LINE;
	heap = stride * BLOCKS > HEAP ? stride * BLOCKS : HEAP;
	struct end ping = {share(), 0}, pong = {share(), 0};
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(1);
		for (;;) {
			receive_block(&ping);
			send_block(&pong);
		}
	}
	pin(0);
	measure(&ping, &pong, strtod(argv[2], NULL));
	kill(child, SIGKILL);
	return 0;
}
