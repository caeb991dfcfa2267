// Collectives by MPI, measured as bench/coll_task.go does: batches between two
// barriers, timed from when the first rank begins until the last one has ended, each
// call with new input, of doubles, with rank 0 as the root.
//
//	mpirun -np N coll SECONDS SIZE[,SIZE...] NAME...
//
// It prints lines like bench -json does. scripts/collectives.sh compares the two.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 64, REWRITE_MAX = 4 << 10, SEVERAL_MAX = 256 << 10, SEVERAL = 4, MANY = 16, MAX_BATCH = 1 << 20, SAMPLES = 1 << 15 };

static const double ROOM_MAX = 2147483648., BATCH_TIME = 100e-6;

static int rank, ranks;

static MPI_Comm ring;

enum { EACH = 0 };

// The collectives, and the number of blocks of their input and output: one vector, one
// block for EACH rank, or two, one for each neighbor on a ring. The size of a cut vector
// is that of all blocks.
static const struct collective {
	const char *name;
	int in_blocks, out_blocks, cut;
} collectives[] = {
	{"barrier", 1, 1, 0}, {"broadcast", 1, 1, 0}, {"reduce", 1, 1, 0}, {"allreduce", 1, 1, 0}, {"gather", 1, EACH, 0},
	{"allgather", 1, EACH, 0}, {"scatter", EACH, 1, 0}, {"reducescatter", EACH, 1, 1}, {"alltoall", EACH, EACH, 0}, {"scan", 1, 1, 0},
	{"neighbor_alltoall", 2, 2, 0},
};

// One collective at one size.
static struct task {
	const struct collective *c;
	int count, inputs, small;
	size_t in_bytes, out_bytes;
	double *in[SEVERAL], *out;
} t;

static double now(void) {
	struct timespec s;
	clock_gettime(CLOCK_MONOTONIC, &s);
	return s.tv_sec + s.tv_nsec / 1e9;
}

static void call(double *in) {
	switch (t.c - collectives) {
	case 0: MPI_Barrier(MPI_COMM_WORLD); break;
	case 1: MPI_Bcast(rank == 0 ? in : t.out, t.count, MPI_DOUBLE, 0, MPI_COMM_WORLD); break;
	case 2: MPI_Reduce(in, t.out, t.count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); break;
	case 3: MPI_Allreduce(in, t.out, t.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
	case 4: MPI_Gather(in, t.count, MPI_DOUBLE, t.out, t.count, MPI_DOUBLE, 0, MPI_COMM_WORLD); break;
	case 5: MPI_Allgather(in, t.count, MPI_DOUBLE, t.out, t.count, MPI_DOUBLE, MPI_COMM_WORLD); break;
	case 6: MPI_Scatter(in, t.count, MPI_DOUBLE, t.out, t.count, MPI_DOUBLE, 0, MPI_COMM_WORLD); break;
	case 7: MPI_Reduce_scatter_block(in, t.out, t.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
	case 8: MPI_Alltoall(in, t.count, MPI_DOUBLE, t.out, t.count, MPI_DOUBLE, MPI_COMM_WORLD); break;
	case 9: MPI_Scan(in, t.out, t.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
	case 10: MPI_Neighbor_alltoall(in, t.count, MPI_DOUBLE, t.out, t.count, MPI_DOUBLE, ring); break;
	}
}

// Changes a byte of every cache line.
static void rewrite(double *mem, size_t bytes) {
	for (size_t i = 0; i < bytes; i += LINE)
		((volatile char *)mem)[i]++;
}

static void look(double *mem, size_t bytes) {
	for (size_t i = 0; i < bytes; i += LINE)
		(void)((volatile char *)mem)[i];
}

static double batch(int n) {
	for (int i = 0; i < t.inputs; i++)
		rewrite(t.in[i], t.in_bytes);
	look(t.out, t.out_bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	double began = now();
	for (int i = 0; i < n; i++) {
		double *in = t.in[i % t.inputs];
		if (t.small)
			rewrite(in, t.in_bytes);
		call(in);
	}
	double mine[2] = {-began, now()}, all[2] = {0, 0};
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	return all[0] + all[1];
}

// Rank 0 announces the number of calls of the next batch; 0 ends the series.
static double announced(int n, int *told) {
	*told = n;
	MPI_Bcast(told, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return *told > 0 ? batch(*told) : 0;
}

static int ascending(const void *a, const void *b) {
	double d = *(const double *)a - *(const double *)b;
	return (d > 0) - (d < 0);
}

// Finds the number of calls that fill a batch. One slow call is a batch.
static int calibrate(double seconds) {
	int told, most = t.small ? MAX_BATCH : t.inputs, n = t.small ? 1 : most;
	double first = announced(n, &told);
	if (t.small && first < 5e-3)
		n = MANY;
	for (double end = now() + seconds;;) {
		double took = announced(n, &told);
		if (took < BATCH_TIME && n < most)
			n = 2 * n < most ? 2 * n : most;
		else if (now() >= end)
			return n;
	}
}

static void measure(double seconds, int size) {
	static double samples[SAMPLES];
	int told, taken = 0, n = calibrate(seconds / 8);
	for (double end = now() + seconds; taken < SAMPLES && (taken == 0 || now() < end); taken++)
		samples[taken] = announced(n, &told) / n * 1e6;
	announced(0, &told);
	qsort(samples, taken, sizeof *samples, ascending);
	printf("{\"benchmark\":\"coll_%s\",\"ranks\":%d,\"size\":%d,\"unit\":\"us\",\"min\":%g,\"median\":%g,\"p99\":%g}\n",
		t.c->name, ranks, size, samples[0], samples[taken / 2], samples[taken * 99 / 100]);
	fflush(stdout);
}

static double *room(size_t bytes) {
	void *mem = NULL;
	if (posix_memalign(&mem, 4096, bytes)) {
		fprintf(stderr, "coll: no memory for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (size_t i = 0; i < bytes / sizeof(double); i++)
		((double *)mem)[i] = 1;
	return mem;
}

static void run(const struct collective *c, int size, double seconds) {
	int block = (c->cut ? size / ranks : size) / (int)sizeof(double), told;
	memset(&t, 0, sizeof t);
	t.c = c;
	t.count = block > 1 ? block : 1;
	t.in_bytes = sizeof(double) * t.count * (c->in_blocks == EACH ? ranks : c->in_blocks);
	t.out_bytes = sizeof(double) * t.count * (c->out_blocks == EACH ? ranks : c->out_blocks);
	if (ranks * (double)(t.in_bytes + t.out_bytes) > ROOM_MAX)
		return;
	t.small = size <= REWRITE_MAX;
	t.inputs = t.small || size > SEVERAL_MAX ? 1 : SEVERAL;
	for (int i = 0; i < t.inputs; i++)
		t.in[i] = room(t.in_bytes);
	t.out = room(t.out_bytes);
	if (rank == 0)
		measure(seconds, size);
	else
		do // the batches that rank 0 announces, until it announces 0
			announced(0, &told);
		while (told > 0);
	for (int i = 0; i < t.inputs; i++)
		free(t.in[i]);
	free(t.out);
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 4) {
		if (rank == 0)
			fprintf(stderr, "usage: coll SECONDS SIZE[,SIZE...] NAME...\n");
		MPI_Finalize();
		return 2;
	}
	MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){ranks}, (int[]){1}, 0, &ring);
	for (int a = 3; a < argc; a++)
		for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++) {
			if (strcmp(argv[a], collectives[i].name))
				continue;
			for (char *at = argv[2]; *at; at += *at == ',') {
				run(&collectives[i], (int)strtol(at, &at, 10), strtod(argv[1], NULL));
				if (i == 0)
					break; // a barrier has no size
			}
		}
	MPI_Finalize();
	return 0;
}
