// One-sided operations by OpenSHMEM: the work of bench's tasks of the same names.
//
//	oshrun -np 2 shmem [-b BUFFERS] SECONDS SIZE[,SIZE...] NAME...

#include <shmem.h>

#include "bench.h"

static long announcement;
static double times[2 * 1024]; // begin and end of each PE, at PE 0
static uint64_t flag, sent, received;
static long word, lock;
static char *mine, *source;
static uint64_t wide[RANDOM_WORDS];

static void told(long *n) {
	if (rank == 0)
		for (int pe = 0; pe < ranks; pe++)
			shmem_long_p(&announcement, *n, pe);
	shmem_barrier_all();
	*n = announcement;
	shmem_barrier_all(); // all have read it
}

static void meet(void) { shmem_barrier_all(); }

static double last(double began, double ended) {
	double mine[2] = {began, ended};
	shmem_double_put(times + 2 * rank, mine, 2, 0);
	shmem_barrier_all();
	double first = times[0], end = times[1];
	for (int pe = 1; pe < ranks; pe++) {
		first = times[2 * pe] < first ? times[2 * pe] : first;
		end = times[2 * pe + 1] > end ? times[2 * pe + 1] : end;
	}
	return end - first;
}

static void put_random(long n);
static void xor_random(long n);

static int set_up(const struct task *t) {
	mine = shmem_align(LINE, all);
	source = calloc(all, 1);
	word = flag = sent = received = 0;
	if (!mine || !source || ranks > 1024)
		shmem_global_exit(3);
	memset(mine, 0, all);
	shmem_barrier_all();
	if (rank == 0 && (t->run == put_random || t->run == xor_random)) { // takes the cache lines from the target
		for (size_t i = 0; i < RANDOM_WORDS; i += LINE / sizeof *wide)
			shmem_uint64_p(&wide[i], 0, 1);
		shmem_quiet();
	}
	return 1;
}

static void tear_down(void) {
	shmem_barrier_all();
	shmem_free(mine);
	free(source);
}

static void renew(void) {
	if (rank == 0)
		rewrite(source, all);
	else
		look(mine, all);
}

static void put_latency(long n) {
	for (; rank == 0 && n > 0; n--) {
		size_t here = next_buffer();
		shmem_putmem(mine + here, source + here, size, 1);
		shmem_quiet();
	}
}

static void put_issue(long n) {
	if (rank)
		return;
	for (; n > 0; n--) {
		size_t here = next_buffer();
		shmem_putmem(mine + here, source + here, size, 1);
	}
	shmem_quiet();
}

static void put_random(long n) {
	if (rank)
		return;
	for (; n > 0; n--) {
		size_t i = next_random();
		shmem_uint64_p(&wide[i], i, 1);
	}
	shmem_quiet();
}

static void xor_random(long n) {
	if (rank)
		return;
	for (; n > 0; n--) {
		size_t i = next_random();
		shmem_uint64_atomic_xor(&wide[i], i, 1);
	}
	shmem_quiet();
}

static void get_latency(long n) {
	for (; rank == 0 && n > 0; n--) {
		size_t here = next_buffer();
		shmem_getmem(source + here, mine + here, size, 1);
	}
}

static void stream(int to, long n) {
	while (n > 0) {
		for (int i = 0; i < WINDOW && n > 0; i++, n--) {
			size_t here = next_buffer();
			shmem_putmem_nbi(mine + here, source + here, size, to);
		}
		shmem_quiet();
	}
}

static void put_bw(long n) {
	if (rank == 0)
		stream(1, n);
}

static void put_bibw(long n) {
	if (rank <= 1)
		stream(1 - rank, n);
}

static void get_bw(long n) {
	while (rank == 0 && n > 0) {
		for (int i = 0; i < WINDOW && n > 0; i++, n--) {
			size_t here = next_buffer();
			shmem_getmem_nbi(source + here, mine + here, size, 1);
		}
		shmem_quiet();
	}
}

static void fetch_add_latency(long n) {
	for (; rank == 0 && n > 0; n--)
		shmem_long_atomic_fetch_add(&word, 1, 1);
}

static void fetch_add_contended(long n) {
	for (; n > 0; n--)
		shmem_long_atomic_fetch_add(&word, 1, 0);
}

static void cas_latency(long n) {
	static long held;
	for (; rank == 0 && n > 0; n--) {
		long seen = shmem_long_atomic_compare_swap(&word, held, held + 1, 1);
		held = seen == held ? held + 1 : seen;
	}
}

static void lock_latency(long n) {
	for (; rank == 0 && n > 0; n--) {
		shmem_set_lock(&lock);
		shmem_long_p(&word, n, 1);
		shmem_quiet();
		shmem_clear_lock(&lock);
	}
}

static void send_block(void) {
	rewrite(source, size);
	sent++;
	shmem_putmem(mine, source, size, 1 - rank);
	shmem_fence();
	shmem_uint64_p(&flag, sent, 1 - rank);
}

static void receive_block(void) {
	received++;
	shmem_uint64_wait_until(&flag, SHMEM_CMP_GE, received);
	look(mine, size);
}

static void put_notify(long n) {
	for (; rank <= 1 && n > 0; n--)
		if (rank == 0) {
			send_block();
			receive_block();
		} else {
			receive_block();
			send_block();
		}
}

static void barrier(long n) {
	for (; n > 0; n--)
		shmem_barrier_all();
}

static const struct task tasks[] = {
	{"put_latency", "us", 1e6, 1, 0, 0, 0, renew, put_latency},
	{"put_issue", "us", 1e6, 1, 0, 0, 0, renew, put_issue},
	{"get_latency", "us", 1e6, 1, 0, 0, 0, renew, get_latency},
	{"put_bw", "MB/s", 0, 1, WINDOW, 0, 0, renew, put_bw},
	{"get_bw", "MB/s", 0, 1, WINDOW, 0, 0, renew, get_bw},
	{"put_bibw", "MB/s", 0, 1, WINDOW, 1, 2, renew, put_bibw},
	{"fetch_add_latency", "us", 1e6, 0, 0, 0, 0, NULL, fetch_add_latency},
	{"fetch_add_contended", "us", 1e6, 0, 0, 1, 0, NULL, fetch_add_contended},
	{"cas_latency", "us", 1e6, 0, 0, 0, 0, NULL, cas_latency},
	{"lock_latency", "us", 1e6, 0, 0, 0, 0, NULL, lock_latency},
	{"put_notify_latency", "us", 0.5e6, 1, 0, 0, 0, NULL, put_notify},
	{"rpipe_latency", "us", 0.5e6, 1, 0, 0, 0, NULL, put_notify},
	{"put_random", "us", 1e6, 0, WINDOW, 0, 0, NULL, put_random},
	{"xor_random", "us", 1e6, 0, WINDOW, 0, 0, NULL, xor_random},
	{"coll_barrier", "us", 1e6, 0, 0, 1, 0, NULL, barrier},
};

int main(int argc, char **argv) {
	shmem_init();
	rank = shmem_my_pe();
	ranks = shmem_n_pes();
	int code = run_all(argc, argv, tasks, sizeof tasks / sizeof *tasks);
	// Debian's library fails in shmem_finalize with UCX's shared memory, and the launcher then
	// reports a crash.
	fflush(stdout);
	shmem_barrier_all();
	shmem_global_exit(code);
}
