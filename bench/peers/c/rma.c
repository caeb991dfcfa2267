// One-sided operations by MPI: the work of bench's tasks of the same names. Names that end
// in _send are the same work by messages.
//
//	mpirun -np 2 rma [-b BUFFERS] SECONDS SIZE[,SIZE...] NAME...

#include <mpi.h>

#include "bench.h"

enum { HEAD = 64 }; // the flag's line, ahead of the data

static MPI_Win window;                 // under lock_all
static MPI_Win locked;                 // under locks of its own, or fences
static char *mine, *source;
static volatile uint64_t *flag;
static uint64_t sent, received, *word;

static void told(long *n) { MPI_Bcast(n, 1, MPI_LONG, 0, MPI_COMM_WORLD); }

static void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }

static double last(double began, double ended) {
	double mine[2] = {-began, ended}, most[2] = {0, 0};
	MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	return most[0] + most[1];
}

static int set_up(const struct task *t) {
	(void)t;
	source = calloc(all + HEAD, 1);
	MPI_Win_allocate(HEAD + all, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
	memset(mine, 0, HEAD + all);
	flag = (volatile uint64_t *)mine;
	sent = received = 0;
	MPI_Win_allocate(sizeof *word, sizeof *word, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &locked);
	*word = 0;
	MPI_Win_lock_all(0, window);
	meet();
	return 1;
}

static void tear_down(void) {
	meet();
	MPI_Win_unlock_all(window);
	MPI_Win_free(&window);
	MPI_Win_free(&locked);
	free(source);
}

static void renew(void) {
	if (rank == 0)
		rewrite(source, all);
	else
		look(mine + HEAD, all);
}

static void put(int to) {
	size_t here = next_buffer();
	MPI_Put(source + here, size, MPI_BYTE, to, HEAD + here, size, MPI_BYTE, window);
}

static void get(int from) {
	size_t here = next_buffer();
	MPI_Get(source + here, size, MPI_BYTE, from, HEAD + here, size, MPI_BYTE, window);
}

static void put_latency(long n) {
	for (; rank == 0 && n > 0; n--) {
		put(1);
		MPI_Win_flush(1, window);
	}
}

static void put_issue(long n) {
	if (rank)
		return;
	for (; n > 0; n--) {
		put(1);
		MPI_Win_flush_local(1, window); // the source may change, as behind our Put
	}
	MPI_Win_flush(1, window);
}

static void get_latency(long n) {
	for (; rank == 0 && n > 0; n--) {
		get(1);
		MPI_Win_flush(1, window);
	}
}

static void windows(int to, long n, void (*one)(int)) {
	while (n > 0) {
		for (int i = 0; i < WINDOW && n > 0; i++, n--)
			one(to);
		MPI_Win_flush(to, window);
	}
}

static void put_bw(long n) {
	if (rank == 0)
		windows(1, n, put);
}

static void get_bw(long n) {
	if (rank == 0)
		windows(1, n, get);
}

static void put_bibw(long n) {
	if (rank <= 1)
		windows(1 - rank, n, put);
}

static void fetch_add(int target, long n) {
	uint64_t one = 1, old;
	for (; n > 0; n--) {
		MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, target, 0, MPI_SUM, window);
		MPI_Win_flush(target, window);
	}
}

static void fetch_add_latency(long n) {
	if (rank == 0)
		fetch_add(1, n);
}

static void fetch_add_contended(long n) { fetch_add(0, n); }

static void cas_latency(long n) {
	static uint64_t held;
	uint64_t seen, more;
	for (; rank == 0 && n > 0; n--) {
		more = held + 1;
		MPI_Compare_and_swap(&more, &held, &seen, MPI_UINT64_T, 1, 0, window);
		MPI_Win_flush(1, window);
		held = seen == held ? more : seen;
	}
}

static int words(void) { return size < 8 ? 1 : size / 8; }

static void acc_latency(long n) {
	for (; rank == 0 && n > 0; n--) {
		MPI_Accumulate(source, words(), MPI_UINT64_T, 1, HEAD, words(), MPI_UINT64_T, MPI_SUM, window);
		MPI_Win_flush(1, window);
	}
}

static void get_acc_latency(long n) {
	static uint64_t old[(4 << 20) / 8];
	for (; rank == 0 && n > 0 && size <= (int)sizeof old; n--) {
		MPI_Get_accumulate(source, words(), MPI_UINT64_T, old, words(), MPI_UINT64_T, 1, HEAD, words(), MPI_UINT64_T, MPI_SUM, window);
		MPI_Win_flush(1, window);
	}
}

static void lock_latency(long n) {
	for (; rank == 0 && n > 0; n--) {
		uint64_t v = n;
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, locked);
		MPI_Put(&v, 1, MPI_UINT64_T, 1, 0, 1, MPI_UINT64_T, locked);
		MPI_Win_unlock(1, locked);
	}
}

static void lock_contended(long n) {
	for (uint64_t v; n > 0; n--) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, locked);
		MPI_Get(&v, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, locked);
		MPI_Win_flush(0, locked);
		v++;
		MPI_Put(&v, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, locked);
		MPI_Win_unlock(0, locked);
	}
}

static void fence(long n) {
	MPI_Win_fence(0, locked);
	for (; n > 0; n--) {
		uint64_t v = n;
		MPI_Put(&v, 1, MPI_UINT64_T, (rank + 1) % ranks, 0, 1, MPI_UINT64_T, locked);
		MPI_Win_fence(0, locked);
	}
}

// Data, and behind it a flag for which the target polls its own memory.
static void send_block(void) {
	rewrite(source, size);
	sent++;
	MPI_Put(source, size, MPI_BYTE, 1 - rank, HEAD, size, MPI_BYTE, window);
	MPI_Win_flush(1 - rank, window); // puts are not ordered
	MPI_Put(&sent, 1, MPI_UINT64_T, 1 - rank, 0, 1, MPI_UINT64_T, window);
	MPI_Win_flush(1 - rank, window);
}

static void receive_block(void) {
	received++;
	for (int polls = 1; *flag < received; polls++) {
		MPI_Win_sync(window);
		if (polls % 1000 == 0) { // the progress that some configurations need
			int any;
			MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
		}
	}
	look(mine + HEAD, size);
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

static void send_message(void) {
	rewrite(source, size);
	MPI_Send(source, size, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
}

static void receive_message(void) {
	MPI_Recv(mine + HEAD, size, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	look(mine + HEAD, size);
}

static void send_latency(long n) {
	for (; rank <= 1 && n > 0; n--)
		if (rank == 0) {
			send_message();
			receive_message();
		} else {
			receive_message();
			send_message();
		}
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
	{"acc_latency", "us", 1e6, 1, 0, 0, 0, NULL, acc_latency},
	{"get_acc_latency", "us", 1e6, 1, 0, 0, 0, NULL, get_acc_latency},
	{"lock_latency", "us", 1e6, 0, 0, 0, 0, NULL, lock_latency},
	{"lock_contended", "us", 1e6, 0, 0, 1, 0, NULL, lock_contended},
	{"fence", "us", 1e6, 0, 0, 1, 0, NULL, fence},
	{"put_notify_latency", "us", 0.5e6, 1, 0, 0, 0, NULL, put_notify},
	{"put_notify_latency_send", "us", 0.5e6, 1, 0, 0, 0, NULL, send_latency},
};

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int code = run_all(argc, argv, tasks, sizeof tasks / sizeof *tasks);
	MPI_Finalize();
	return code;
}
