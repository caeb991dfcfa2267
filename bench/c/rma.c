// Ping-pong by MPI's one-sided calls: each message is put into a window, then a flag
// behind it, for which the target polls its own memory. It corresponds to a pipe's push,
// over MPI-3's windows.
//
//	mpirun -np 2 rma SIZE SECONDS
//
// It prints one line like bench -json does. scripts/pingpong.sh compares.

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 1 << 15 };

static MPI_Win window;
static volatile uint64_t *mine; // the flag, and the data a line behind it
static char *source;
static int peer, size;
static uint64_t sent, received;

static void send_block(void) {
	for (int i = 0; i < size; i += 64)
		source[i]++;
	sent++;
	MPI_Put(source, size, MPI_BYTE, peer, 64, size, MPI_BYTE, window);
	MPI_Win_flush(peer, window); // puts are not ordered
	MPI_Put(&sent, 1, MPI_UINT64_T, peer, 0, 1, MPI_UINT64_T, window);
	MPI_Win_flush(peer, window);
}

static char receive_block(void) {
	received++;
	while (*mine < received)
		MPI_Win_sync(window);
	char sum = 0;
	for (int i = 0; i < size; i += 64)
		sum += ((volatile char *)mine)[64 + i];
	return sum;
}

static double batch(long n) {
	double began = MPI_Wtime();
	for (long i = 0; i < n; i++) {
		send_block();
		receive_block();
	}
	return MPI_Wtime() - began;
}

static int ascending(const void *a, const void *b) {
	double d = *(const double *)a - *(const double *)b;
	return (d > 0) - (d < 0);
}

// answer answers as many messages as rank 0 announces, until it announces 0.
static void answer(void) {
	for (long n; MPI_Recv(&n, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), n > 0;)
		for (; n > 0; n--) {
			receive_block();
			send_block();
		}
}

static double ask(long n) {
	MPI_Send(&n, 1, MPI_LONG, peer, 0, MPI_COMM_WORLD);
	return n > 0 ? batch(n) : 0;
}

static void measure(double seconds) {
	static double samples[SAMPLES];
	long n = 1;
	while (ask(n) < 100e-6 && n < 1 << 20)
		n *= 2;
	int taken = 0;
	for (double end = MPI_Wtime() + seconds; taken < SAMPLES && (taken == 0 || MPI_Wtime() < end); taken++)
		samples[taken] = ask(n) / n / 2 * 1e6;
	ask(0);
	qsort(samples, taken, sizeof *samples, ascending);
	printf("{\"benchmark\":\"pingpong_mpi_rma\",\"ranks\":2,\"size\":%d,\"unit\":\"us\",\"min\":%g,\"median\":%g,\"p99\":%g}\n",
		size, samples[0], samples[taken / 2], samples[taken * 99 / 100]);
}

int main(int argc, char **argv) {
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc != 3 || (size = atoi(argv[1])) < 1) {
		fprintf(stderr, "usage: mpirun -np 2 rma SIZE SECONDS\n");
		return 2;
	}
	peer = 1 - rank;
	source = calloc(size, 1);
	MPI_Win_allocate(64 + size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
	*mine = 0;
	MPI_Win_lock_all(0, window);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		measure(atof(argv[2]));
	else
		answer();
	MPI_Win_unlock_all(window);
	MPI_Win_free(&window);
	MPI_Finalize();
	return 0;
}
