// One-sided operations by MPI: the work of bench's tasks of the same names. Names that end
// in _send are the same work by messages.
//
//	mpirun -np 2 rma [-b BUFFERS] SECONDS SIZE[,SIZE...] NAME...

#include "over_mpi.h"

enum { HEAD = 64 }; // the flag's line, ahead of the data

static MPI_Win window;                 // under lock_all
static MPI_Win locked;                 // under locks of its own, or fences
static char *mine, *source;
static volatile uint64_t *flag;
static uint64_t sent, received, *word;
static MPI_Win wide; // of RANDOM_WORDS, under lock_all
static uint64_t *words_here;

static void put_random(long n);
static void xor_random(long n);

static int set_up(const struct task *t) {
	source = calloc(all + HEAD, 1);
	MPI_Win_allocate(HEAD + all, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
	memset(mine, 0, HEAD + all);
	flag = (volatile uint64_t *)mine;
	sent = received = 0;
	MPI_Win_allocate(sizeof *word, sizeof *word, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &locked);
	*word = 0;
	MPI_Win_allocate(RANDOM_WORDS * sizeof *words_here, sizeof *words_here, MPI_INFO_NULL, MPI_COMM_WORLD, &words_here, &wide);
	memset(words_here, 0, RANDOM_WORDS * sizeof *words_here);
	MPI_Win_lock_all(0, window);
	MPI_Win_lock_all(0, wide);
	meet();
	if (rank == 0 && (t->run == put_random || t->run == xor_random)) { // takes the cache lines from the target
		uint64_t *zeros = calloc(RANDOM_WORDS, sizeof *zeros);
		MPI_Put(zeros, RANDOM_WORDS, MPI_UINT64_T, 1, 0, RANDOM_WORDS, MPI_UINT64_T, wide);
		MPI_Win_flush(1, wide);
		free(zeros);
	}
	return 1;
}

static void tear_down(void) {
	meet();
	MPI_Win_unlock_all(window);
	MPI_Win_unlock_all(wide);
	MPI_Win_free(&wide);
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

// The origin keeps each value until the flush behind it.
static void put_random(long n) {
	static uint64_t values[WINDOW];
	while (rank == 0 && n > 0) {
		for (int i = 0; i < WINDOW && n > 0; i++, n--) {
			values[i] = next_random();
			MPI_Put(&values[i], 1, MPI_UINT64_T, 1, values[i], 1, MPI_UINT64_T, wide);
		}
		MPI_Win_flush(1, wide);
	}
}

static void xor_random(long n) {
	static uint64_t values[WINDOW];
	while (rank == 0 && n > 0) {
		for (int i = 0; i < WINDOW && n > 0; i++, n--) {
			values[i] = next_random();
			MPI_Accumulate(&values[i], 1, MPI_UINT64_T, 1, values[i], 1, MPI_UINT64_T, MPI_BXOR, wide);
		}
		MPI_Win_flush(1, wide);
	}
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

// Ranks of the first half play ping-pong with those of the second, and send first. Two of
// many ranks play alone, for a task with one pair.
static int partner, begins;

static int plays(int pairs) {
	begins = rank < pairs;
	partner = begins ? rank + pairs : rank - pairs;
	return rank < 2 * pairs;
}

static void ping_pong(int pairs, long n, void (*send)(void), void (*receive)(void)) {
	for (int playing = plays(pairs); playing && n > 0; n--)
		if (begins) {
			send();
			receive();
		} else {
			receive();
			send();
		}
}

// Data, and behind it a flag for which the target polls its own memory.
static void send_block(void) {
	rewrite(source, size);
	sent++;
	MPI_Put(source, size, MPI_BYTE, partner, HEAD, size, MPI_BYTE, window);
	MPI_Win_flush(partner, window); // puts are not ordered
	MPI_Put(&sent, 1, MPI_UINT64_T, partner, 0, 1, MPI_UINT64_T, window);
	MPI_Win_flush(partner, window);
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

static void put_notify(long n) { ping_pong(1, n, send_block, receive_block); }

static void put_notify_pairs(long n) { ping_pong(ranks / 2, n, send_block, receive_block); }

static void send_message(void) {
	rewrite(source, size);
	MPI_Send(source, size, MPI_BYTE, partner, 1, MPI_COMM_WORLD);
}

static void receive_message(void) {
	MPI_Recv(mine + HEAD, size, MPI_BYTE, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	look(mine + HEAD, size);
}

static void send_latency(long n) { ping_pong(1, n, send_message, receive_message); }

static void send_latency_pairs(long n) { ping_pong(ranks / 2, n, send_message, receive_message); }

// Streams messages with new data, and one back behind the last.
static void send_stream(long n) {
	if (!plays(1))
		return;
	int length = size;
	for (; n > 0; n--)
		if (begins)
			send_message();
		else
			receive_message();
	size = 1;
	if (begins)
		receive_message();
	else
		send_message();
	size = length;
}

static void put_pairs(long n) {
	if (plays(ranks / 2) && begins)
		windows(partner, n, put);
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
	{"rpipe_latency", "us", 0.5e6, 1, 0, 0, 0, NULL, put_notify},
	{"rpipe_latency_send", "us", 0.5e6, 1, 0, 0, 0, NULL, send_latency},
	{"rpipe_bw_send", "MB/s", 0, 1, WINDOW, 0, 0, NULL, send_stream},
	{"multi_latency", "us", 0.5e6, 1, 0, 1, 0, NULL, put_notify_pairs},
	{"multi_latency_send", "us", 0.5e6, 1, 0, 1, 0, NULL, send_latency_pairs},
	{"put_mbw_mr", "MB/s", 0, 1, WINDOW, 1, PAIRS, renew, put_pairs},
	{"put_random", "us", 1e6, 0, WINDOW, 0, 0, NULL, put_random},
	{"xor_random", "us", 1e6, 0, WINDOW, 0, 0, NULL, xor_random},
};

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int code = run_all(argc, argv, tasks, sizeof tasks / sizeof *tasks);
	MPI_Finalize();
	return code;
}
