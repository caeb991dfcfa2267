/* A program of MPI for the tests of grun as a process manager. Without an argument it puts a
 * number into the right neighbor's window and sums the numbers of all ranks. With one, rank 1
 * ends as the argument says. A window has a page: MPICH 4.0.2 mixes up smaller ones. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *end = argc > 1 ? argv[1] : "";
    const char *number = getenv("PMI_RANK");
    if (!strcmp(end, "early") && number && !strcmp(number, "1")) return 0;
    MPI_Init(&argc, &argv);
    int rank, size, sum, *mine;
    MPI_Win win;
    MPI_Comm host;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 1 && !strcmp(end, "abort")) MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 1 && !strcmp(end, "exit")) _exit(0);
    if (rank == 1 && !strcmp(end, "kill")) raise(SIGKILL);
    if (*end) pause(); /* until grun ends it: after the death of a peer MPICH may fail an assertion first */
    MPI_Win_allocate(4096, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
    *mine = -1;
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Allreduce(mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    int local;
    MPI_Comm_size(host, &local);
    printf("rank %d of %d: rank %d was here, sum %d, %d on this host\n", rank, size, *mine, sum, local);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
