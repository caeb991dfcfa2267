// Package suites holds programs of MPICH's RMA tests and of OpenSHMEM's tests and examples, as this
// project says them: the same idea and the same check, written anew. A program that comes from MPI or
// OpenSHMEM finds here how a call is used, beside the table of docs/migration.md.
//
//	MPICH's program                     here
//	accfence1, derived_acc_flush_local  accumulateBlocks: blocks of a matrix, on both sides
//	acc_ordering                        accumulateOrder: accumulates of one origin in order
//	accpscw1, putpscw1                  columnsInEpochs: a column, put and accumulated in an epoch
//	fetchandadd_tree                    treeCounter: a counter in a tree, paths as indexed blocks
//	get_struct                          structAtOffset: a struct in attached memory
//	linked_list_bench_lock_excl         lockedList: nodes in attached memory, appended under a lock
//	linked_list_lockall                 appendedList: the same by compare-and-swap of indices
//	lockcontention3                     contendedLock: exclusive and shared locks of one rank
//	mcs_mutex                           queueLock: a lock of Mellor-Crummey and Scott
//	mutex_bench                         queueLock, too
//	nullpscw                            emptyEpochs: groups without members, windows without elements
//	pscw_ordering                       epochsInTurn: another target in each epoch
//	req_example                         anyOfSeveral: started gets, waited for in any order
//	rmanull, rmazero                    nothing: null targets and empty slices in every call
//	strided_acc_subarray                boxes: accumulates on a sub-array
//	strided_getacc_indexed              indexedFetch: earlier values of indexed blocks
//	strided_putget_indexed_shared       sharedArray, too
//	test3, wintest                      testedEpoch: the target polls for the end of an epoch
//	transpose4                          transposed: one put of columns to rows
//	win_dynamic_acc                     attachedSums: accumulates on attached memory
//	win_shared, win_large_shm           sharedArray: one array of all ranks of a host
//	win_shared_zerobyte                 sharedWithGaps: ranks without elements
//
//	OpenSHMEM's program                 here
//	unit/bigput, unit/cswap             chain: compare-and-swap along a ring
//	unit/c11_shmem_wait_until_vector    vector: values to wait for, one for each element
//	unit/collect                        collected: blocks of unknown lengths
//	unit/alltoalls                      spread: strided all-to-all
//	unit/iput-iget, unit/strided_put    strides: different strides of the two sides
//	unit/many-ctx, spec/shmem_ctx       contexts: a queue for each goroutine
//	unit/mt_lock_test, unit/test_lock   tried: a lock that several goroutines try
//	unit/pingpong                       pingPong: an element as a flag
//	unit/put_signal_nbi, signal_fetch   signals: started puts with signals that add
//	unit/shmem_team_translate           translated: ranks of a team of every second rank
//	unit/shrealloc                      grown: a window that grows and shrinks
//	unit/waituntil                      comparisons: all six, signed
//	unit/web                            web: every rank tells every other through a queue
//	unit/fadd_nbi, atomic_nbi           startedAtomics: several fetches under way
//	static symmetric variables          variables: fields of a struct
//	spec/shmem_test_some                someOf: arrivals in any order, each once
//	spec/shmem_ctx_pipelined_reduce     pipelined: partial sums through two queues
package suites
