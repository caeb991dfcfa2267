// The parts of the frame that programs over MPI share: how ranks meet and agree on times.

#include <mpi.h>

#include "bench.h"

static void told(long *n) { MPI_Bcast(n, 1, MPI_LONG, 0, MPI_COMM_WORLD); }

static void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }

static double last(double began, double ended) {
	double mine[2] = {-began, ended}, most[2] = {0, 0};
	MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	return most[0] + most[1];
}
