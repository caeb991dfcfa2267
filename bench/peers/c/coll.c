// Collectives by MPI, measured as bench/coll_task.go does: batches between two
// barriers, timed from when the first rank begins until the last one has ended, each
// call with new input, of doubles, with rank 0 as the root.
//
//	mpirun -np N coll [-b BUFFERS] [-l] SECONDS SIZE[,SIZE...] NAME...

#include "over_mpi.h"

enum { REWRITE_MAX = 4 << 10, SEVERAL_MAX = 256 << 10, SEVERAL = 4, MANY = 16, PACED = 100000, SLICES = 16 };

static const double ROOM_MAX = 2147483648., BESIDE_RATE = 1e10;

static MPI_Comm ring;

enum { EACH = 0 };

// The collectives, and the number of blocks of their input and output: one vector, one
// block for EACH rank, or two, one for each neighbor on a ring. The size of a cut vector
// is that of all blocks.
static const struct collective {
	int in_blocks, out_blocks, cut;
} collectives[] = {
	{1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {1, EACH, 0},
	{1, EACH, 0}, {EACH, 1, 0}, {EACH, 1, 1}, {EACH, EACH, 0}, {1, 1, 0},
	{2, 2, 0}, {1, 1, 0}, {1, 2, 0}, {1, 1, 0},
	{1, 1, 0}, {1, 1, 0}, {1, EACH, 0}, {EACH, EACH, 0}, // beside a computation
	{1, 1, 0}, {1, 1, 0}, {1, EACH, 0}, {EACH, EACH, 0}, // likewise, with calls of MPI_Test
};

enum { BESIDE = 14, TESTING = BESIDE + 4 };

// One collective at one size.
static struct work {
	const struct collective *c;
	int count, inputs, outputs, small;
	size_t in_bytes, out_bytes;
	double **in, **out;
} t;

static MPI_Op add;

static void add_doubles(void *in, void *inout, int *count, MPI_Datatype *type) {
	(void)type;
	for (int i = 0; i < *count; i++)
		((double *)inout)[i] += ((double *)in)[i];
}

static double sink, unit = 1; // unit: seconds of one unit of work

static void compute(long units) {
	double sum = 1;
	for (long i = 0; i < units; i++)
		sum = sum * 0.5 + 1;
	sink += sum;
}

static void calibrate(void) {
	for (int i = 0; i < 50; i++) {
		double began = now();
		compute(PACED);
		double took = (now() - began) / PACED;
		unit = took < unit ? took : unit;
	}
}

// Starts a call, computes as long as a copy of its bytes at BESIDE_RATE takes, and waits. The
// computation calls MPI_Test now and then, or not at all.
static void beside(int kind, double *in, double *out, int tests) {
	MPI_Request r;
	int done;
	long units = (long)(size / BESIDE_RATE / unit) + 1;
	switch (kind) {
	case 0: MPI_Ibcast(rank == 0 ? in : out, t.count, MPI_DOUBLE, 0, MPI_COMM_WORLD, &r); break;
	case 1: MPI_Iallreduce(in, out, t.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &r); break;
	case 2: MPI_Iallgather(in, t.count, MPI_DOUBLE, out, t.count, MPI_DOUBLE, MPI_COMM_WORLD, &r); break;
	case 3: MPI_Ialltoall(in, t.count, MPI_DOUBLE, out, t.count, MPI_DOUBLE, MPI_COMM_WORLD, &r); break;
	}
	for (int i = 0; tests && i < SLICES; i++) {
		compute(units / SLICES);
		MPI_Test(&r, &done, MPI_STATUS_IGNORE);
	}
	if (!tests)
		compute(units);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void call(double *in, double *out) {
	int which = (int)(t.c - collectives);
	if (which >= BESIDE) {
		beside((which - BESIDE) % 4, in, out, which >= TESTING);
		return;
	}
	switch (which) {
	case 0: MPI_Barrier(MPI_COMM_WORLD); break;
	case 1: MPI_Bcast(rank == 0 ? in : out, t.count, MPI_DOUBLE, 0, MPI_COMM_WORLD); break;
	case 2: MPI_Reduce(in, out, t.count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); break;
	case 3: MPI_Allreduce(in, out, t.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
	case 4: MPI_Gather(in, t.count, MPI_DOUBLE, out, t.count, MPI_DOUBLE, 0, MPI_COMM_WORLD); break;
	case 5: MPI_Allgather(in, t.count, MPI_DOUBLE, out, t.count, MPI_DOUBLE, MPI_COMM_WORLD); break;
	case 6: MPI_Scatter(in, t.count, MPI_DOUBLE, out, t.count, MPI_DOUBLE, 0, MPI_COMM_WORLD); break;
	case 7: MPI_Reduce_scatter_block(in, out, t.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
	case 8: MPI_Alltoall(in, t.count, MPI_DOUBLE, out, t.count, MPI_DOUBLE, MPI_COMM_WORLD); break;
	case 9: MPI_Scan(in, out, t.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
	case 11: MPI_Exscan(in, out, t.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
	case 12: MPI_Neighbor_allgather(in, t.count, MPI_DOUBLE, out, t.count, MPI_DOUBLE, ring); break;
	case 13: MPI_Allreduce(in, out, t.count, MPI_DOUBLE, add, MPI_COMM_WORLD); break;
	case 10: MPI_Neighbor_alltoall(in, t.count, MPI_DOUBLE, out, t.count, MPI_DOUBLE, ring); break;
	}
}

static void renew(void) {
	for (int i = 0; i < t.inputs; i++)
		rewrite(t.in[i], t.in_bytes);
	for (int i = 0; i < t.outputs; i++)
		look(t.out[i], t.out_bytes);
}

static void calls(long n) {
	for (long i = 0; i < n; i++) {
		double *in = t.in[i % t.inputs];
		if (t.small)
			rewrite(in, t.in_bytes);
		call(in, t.out[i % t.outputs]);
		if (lockstep)
			MPI_Barrier(MPI_COMM_WORLD);
	}
}

#define COLLECTIVE(name, sized) {"coll_" name, "us", 1e6, sized, 0, 1, 0, renew, calls}
#define BESIDE_CALL(name) {"beside_" name, "us", 1e6, 1, 0, 1, 0, renew, calls}

// In the order of the collectives.
static const struct task tasks[] = {
	COLLECTIVE("barrier", 0), COLLECTIVE("broadcast", 1), COLLECTIVE("reduce", 1), COLLECTIVE("allreduce", 1), COLLECTIVE("gather", 1),
	COLLECTIVE("allgather", 1), COLLECTIVE("scatter", 1), COLLECTIVE("reducescatter", 1), COLLECTIVE("alltoall", 1), COLLECTIVE("scan", 1),
	COLLECTIVE("neighbor_alltoall", 1), COLLECTIVE("exscan", 1), COLLECTIVE("neighbor_allgather", 1), COLLECTIVE("allreduce_op", 1),
	BESIDE_CALL("broadcast"), BESIDE_CALL("allreduce"), BESIDE_CALL("allgather"), BESIDE_CALL("alltoall"),
	BESIDE_CALL("broadcast_test"), BESIDE_CALL("allreduce_test"), BESIDE_CALL("allgather_test"), BESIDE_CALL("alltoall_test"),
};

static double **rooms(int count, size_t bytes) {
	double **mem = calloc(count, sizeof *mem);
	for (int i = 0; i < count; i++) {
		if (posix_memalign((void **)&mem[i], 4096, bytes)) {
			fprintf(stderr, "coll: no memory for %zu bytes\n", bytes);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		for (size_t k = 0; k < bytes / sizeof(double); k++)
			mem[i][k] = 1;
	}
	return mem;
}

static int set_up(const struct task *made) {
	const struct collective *c = &collectives[made - tasks];
	int block = (c->cut ? size / ranks : size) / (int)sizeof(double);
	memset(&t, 0, sizeof t);
	t.c = c;
	t.count = block > 1 ? block : 1;
	t.in_bytes = sizeof(double) * t.count * (c->in_blocks == EACH ? ranks : c->in_blocks);
	t.out_bytes = sizeof(double) * t.count * (c->out_blocks == EACH ? ranks : c->out_blocks);
	t.small = size <= REWRITE_MAX;
	t.inputs = buffers > 1 ? buffers : t.small || size > SEVERAL_MAX ? 1 : SEVERAL;
	t.outputs = buffers;
	if (ranks * ((double)t.inputs * t.in_bytes + (double)t.outputs * t.out_bytes) > ROOM_MAX)
		return 0;
	t.in = rooms(t.inputs, t.in_bytes);
	t.out = rooms(t.outputs, t.out_bytes);
	if (!t.small)
		most = t.inputs; // each call has new input
	return 1;
}

static void empty(double **mem, int count) {
	for (int i = 0; i < count; i++)
		free(mem[i]);
	free(mem);
}

static void tear_down(void) {
	empty(t.in, t.inputs);
	empty(t.out, t.outputs);
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){ranks}, (int[]){1}, 0, &ring);
	MPI_Op_create(add_doubles, 1, &add);
	calibrate();
	int code = run_all(argc, argv, tasks, sizeof tasks / sizeof *tasks);
	MPI_Op_free(&add);
	MPI_Finalize();
	return code;
}
