// New communicators by MPI, measured as bench/team.go does. Each sample has a communicator of its
// own: half of the ranks, in an order at random. The first call on it is MPI_Allreduce of 8 bytes.
//
//	mpirun -np N team [-b BUFFERS] [-l] SECONDS SIZE[,SIZE...] NAME...

#include "over_mpi.h"

enum { TEAM_SAMPLES = 10, SPLIT = 0, CALL = 1, CONNECTED = 2, FREE = 3 };

static MPI_Comm half = MPI_COMM_NULL;
static int step;
static uint64_t seed;

// Returns the place of this rank among all, in an order that follows from seed.
static int place(void) {
	int *order = malloc(ranks * sizeof *order), mine;
	uint64_t x = seed * 0x9e3779b97f4a7c15 + step + 1;
	for (int i = 0; i < ranks; i++)
		order[i] = i;
	for (int i = ranks - 1; i > 0; i--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		int k = (int)(x % (i + 1)), other = order[k];
		order[k] = order[i];
		order[i] = other;
	}
	mine = order[rank];
	free(order);
	return mine;
}

static void split_comm(void) {
	int p = place();
	MPI_Comm_split(MPI_COMM_WORLD, p % 2, p, &half);
}

static void call(void) {
	double one = 1, sum;
	MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
}

// Frees the communicator of the sample before, and makes what this one needs.
static void prepare(void) {
	if (half != MPI_COMM_NULL)
		MPI_Comm_free(&half);
	seed++;
	if (step == CONNECTED && seed == 1) {
		split_comm();
		call();
		MPI_Comm_free(&half);
	}
	if (step == CONNECTED)
		seed = 1;
	if (step != SPLIT)
		split_comm();
	if (step == FREE)
		call();
}

static void run_step(long n) {
	(void)n;
	switch (step) {
	case SPLIT: split_comm(); break;
	case CALL: case CONNECTED: call(); break;
	case FREE: MPI_Comm_free(&half); break;
	}
}

#define TEAM(name) {"team_" name, "us", 1e6, 0, 0, 1, 0, prepare, run_step}

// In the order of the steps.
static const struct task tasks[] = {TEAM("split"), TEAM("first_call"), TEAM("first_call_connected"), TEAM("free")};

static int set_up(const struct task *made) {
	step = (int)(made - tasks);
	seed = 0;
	few = TEAM_SAMPLES;
	return 1;
}

static void tear_down(void) {
	if (half != MPI_COMM_NULL)
		MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int code = run_all(argc, argv, tasks, sizeof tasks / sizeof *tasks);
	MPI_Finalize();
	return code;
}
