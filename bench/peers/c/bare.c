// The limits of the machine: the work of bench's tasks of the same names by loads, stores
// and atomics on memory that two processes share, or by a socket between them.
//
//	bare [-b BUFFERS] [-s] [-p] SECONDS SIZE[,SIZE...] NAME...
//
// -s uses a TCP socket on the loopback, -p pins the processes to the first two cores.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "bench.h"

enum { POLLS = 1000, ROOM = 512 << 20, TURNS = 32, MOST_SMALL = 1 << 10 };

// Each word has a cache line of its own.
static struct shared {
	_Alignas(128) _Atomic long announcement;
	_Alignas(128) _Atomic long met;
	_Alignas(128) _Atomic long round;
	_Alignas(128) _Atomic uint64_t word;
	_Alignas(128) double times[4];
	_Alignas(128) _Atomic uint64_t wide[RANDOM_WORDS];
	_Alignas(128) _Atomic uint64_t left; // turns that the receiver of a stream has left
	struct {
		_Alignas(128) _Atomic uint64_t turn;
		char data[MOST_SMALL];
	} turns[TURNS];
	struct {
		_Alignas(128) _Atomic uint64_t flag;
		_Alignas(128) char data[ROOM];
	} of[2]; // of each rank
} *shared;

static char *source;
static uint64_t sent, received;
static int sock = -1;

static void fail(const char *what) {
	perror(what);
	exit(3);
}

// Waits in a loop, and yields now and then: ranks may share a core.
#define UNTIL(condition) \
	for (int polls = 1; !(condition); polls++) \
		if (polls % POLLS == 0) \
			sched_yield();

static void meet(void) {
	long round = atomic_load(&shared->round);
	if (atomic_fetch_add(&shared->met, 1) == 1) {
		atomic_store(&shared->met, 0);
		atomic_store(&shared->round, round + 1);
	} else
		UNTIL(atomic_load(&shared->round) > round)
}

static void told(long *n) {
	if (rank == 0)
		atomic_store(&shared->announcement, *n);
	meet();
	*n = atomic_load(&shared->announcement);
	meet();
}

static double last(double began, double ended) {
	shared->times[2 * rank] = began;
	shared->times[2 * rank + 1] = ended;
	meet();
	double *t = shared->times;
	return (t[1] > t[3] ? t[1] : t[3]) - (t[0] < t[2] ? t[0] : t[2]);
}

static void broadcast(long n);

static int set_up(const struct task *t) {
	if (all > ROOM || (t->run == broadcast && size > MOST_SMALL))
		return 0;
	source = calloc(all, 1);
	memset(shared->of[rank].data, 0, all);
	atomic_store(&shared->of[rank].flag, 0);
	sent = received = 0;
	meet();
	return 1;
}

static void tear_down(void) {
	meet();
	free(source);
}

static void renew(void) {
	if (rank == 0)
		rewrite(source, all);
	else
		look(shared->of[1].data, all);
}

static void put_bytes(int to) {
	size_t here = next_buffer();
	memcpy(shared->of[to].data + here, source + here, size);
	__asm__ volatile("" ::: "memory"); // each copy is made
}

static void write_all(size_t n) {
	for (char *p = source; n > 0;) {
		ssize_t done = write(sock, p, n);
		if (done <= 0)
			fail("write");
		p += done, n -= done;
	}
}

// Polls for a while before it sleeps.
static void read_all(size_t n) {
	for (char *p = shared->of[rank].data; n > 0;) {
		ssize_t done = -1;
		for (int polls = 0; polls < 200 && done < 0; polls++)
			done = recv(sock, p, n, MSG_DONTWAIT);
		if (done < 0)
			done = read(sock, p, n);
		if (done <= 0)
			fail("read");
		p += done, n -= done;
	}
	look(shared->of[rank].data, n);
}

// Sends request bytes there and reply bytes back.
static void round_trips(long n, size_t request, size_t reply) {
	for (; n > 0; n--)
		if (rank == 0) {
			write_all(request);
			read_all(reply);
		} else {
			read_all(request);
			write_all(reply);
		}
}

static void put_latency(long n) {
	if (sock >= 0) {
		round_trips(n, size, 8 < all ? 8 : all);
		return;
	}
	for (; rank == 0 && n > 0; n--) {
		put_bytes(1);
		atomic_thread_fence(memory_order_seq_cst);
	}
}

static void put_random(long n) {
	for (; rank == 0 && n > 0; n--) {
		size_t i = next_random();
		atomic_store_explicit(&shared->wide[i], i, memory_order_relaxed);
	}
}

static void xor_random(long n) {
	for (; rank == 0 && n > 0; n--) {
		size_t i = next_random();
		atomic_fetch_xor(&shared->wide[i], i);
	}
}

static void put_stream(long n) {
	if (sock < 0) {
		for (; rank == 0 && n > 0; n--)
			put_bytes(1);
		return;
	}
	if (rank == 0) {
		for (; n > 0; n--)
			write_all(size);
		read_all(1);
	} else {
		for (; n > 0; n--)
			read_all(size);
		write_all(1);
	}
}

static void get_latency(long n) {
	if (sock >= 0) {
		round_trips(n, 8 < all ? 8 : all, size);
		return;
	}
	for (; rank == 0 && n > 0; n--) {
		size_t here = next_buffer();
		memcpy(source + here, shared->of[1].data + here, size);
		__asm__ volatile("" ::: "memory");
	}
}

static void fetch_add_latency(long n) {
	if (sock >= 0) {
		round_trips(n, 8, 8);
		return;
	}
	for (; rank == 0 && n > 0; n--)
		atomic_fetch_add(&shared->word, 1);
}

static void fetch_add_contended(long n) {
	for (; sock < 0 && n > 0; n--)
		atomic_fetch_add(&shared->word, 1);
}

static void cas_latency(long n) {
	if (sock >= 0) {
		round_trips(n, 8, 8);
		return;
	}
	for (uint64_t held = atomic_load(&shared->word); rank == 0 && n > 0; n--)
		if (atomic_compare_exchange_strong(&shared->word, &held, held + 1))
			held++;
}

static void send_block(void) {
	rewrite(source, size);
	memcpy(shared->of[1 - rank].data, source, size);
	atomic_store_explicit(&shared->of[1 - rank].flag, ++sent, memory_order_release);
}

static void receive_block(void) {
	received++;
	UNTIL(atomic_load_explicit(&shared->of[rank].flag, memory_order_acquire) >= received)
	look(shared->of[rank].data, size);
}

static void put_notify(long n) {
	if (sock >= 0) {
		round_trips(n, size, size);
		return;
	}
	for (; n > 0; n--)
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
		meet();
}

// A stream of short messages from rank 0, as a broadcast to one member needs: a flag beside each,
// and room for TURNS of them.
static void broadcast(long n) {
	static uint64_t turn;
	for (; n > 0; n--) {
		uint64_t k = ++turn;
		if (rank == 0) {
			rewrite(source, size);
			UNTIL(atomic_load_explicit(&shared->left, memory_order_acquire) + TURNS >= k)
			memcpy(shared->turns[k % TURNS].data, source, size);
			atomic_store_explicit(&shared->turns[k % TURNS].turn, k, memory_order_release);
		} else {
			UNTIL(atomic_load_explicit(&shared->turns[k % TURNS].turn, memory_order_acquire) >= k)
			memcpy(source, shared->turns[k % TURNS].data, size);
			look(source, size);
			if (k % (TURNS / 2) == 0)
				atomic_store_explicit(&shared->left, k, memory_order_release);
		}
	}
}

static const struct task tasks[] = {
	{"put_latency", "us", 1e6, 1, 0, 0, 0, renew, put_latency},
	{"put_issue", "us", 1e6, 1, 0, 0, 0, renew, put_stream},
	{"get_latency", "us", 1e6, 1, 0, 0, 0, renew, get_latency},
	{"put_bw", "MB/s", 0, 1, WINDOW, 0, 0, renew, put_stream},
	{"get_bw", "MB/s", 0, 1, WINDOW, 0, 0, renew, get_latency},
	{"fetch_add_latency", "us", 1e6, 0, 0, 0, 0, NULL, fetch_add_latency},
	{"fetch_add_contended", "us", 1e6, 0, 0, 1, 0, NULL, fetch_add_contended},
	{"cas_latency", "us", 1e6, 0, 0, 0, 0, NULL, cas_latency},
	{"put_notify_latency", "us", 0.5e6, 1, 0, 0, 0, NULL, put_notify},
	{"rpipe_latency", "us", 0.5e6, 1, 0, 0, 0, NULL, put_notify},
	{"put_random", "us", 1e6, 0, WINDOW, 0, 0, NULL, put_random},
	{"xor_random", "us", 1e6, 0, WINDOW, 0, 0, NULL, xor_random},
	{"coll_barrier", "us", 1e6, 0, 0, 1, 0, NULL, barrier},
	{"coll_broadcast", "us", 1e6, 1, 0, 1, 0, NULL, broadcast},
};

// Both names are those of limits that a socket has.
static int by_socket(const char *name) {
	return strcmp(name, "fetch_add_contended") && strcmp(name, "coll_barrier") && strcmp(name, "get_bw") && strcmp(name, "put_random") && strcmp(name, "xor_random") && strcmp(name, "coll_broadcast");
}

static void pin(int core) {
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	sched_setaffinity(0, sizeof set, &set); // fails where there is one core
}

// Connects the two processes; call ahead of fork.
static void sockets(int pair[2]) {
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof a;
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&a, length) || listen(listener, 1) || getsockname(listener, (struct sockaddr *)&a, &length))
		fail("listen");
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(pair[0], (struct sockaddr *)&a, length) || (pair[1] = accept(listener, NULL, NULL)) < 0)
		fail("connect");
	close(listener);
	for (int i = 0; i < 2; i++)
		setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int main(int argc, char **argv) {
	int pinned = 0, socketed = 0, pair[2];
	for (; argc > 1 && (!strcmp(argv[1], "-s") || !strcmp(argv[1], "-p")); argv++, argc--)
		if (argv[1][1] == 's')
			socketed = 1;
		else
			pinned = 1;
	for (int i = 1; socketed && i < argc; i++)
		if (!by_socket(argv[i]))
			argv[i] = "";
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		fail("mmap");
	if (socketed)
		sockets(pair);
	ranks = 2;
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	rank = child == 0;
	if (rank)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (socketed)
		sock = pair[rank];
	if (pinned)
		pin(rank);
	int code = run_all(argc, argv, tasks, sizeof tasks / sizeof *tasks), status = 0;
	if (rank)
		return code;
	waitpid(child, &status, 0);
	return code ? code : WEXITSTATUS(status);
}
