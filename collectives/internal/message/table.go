package message

// table lists all algorithms; of each collective the one for long data is last.
var table = []Algorithm{
	{Broadcast, "linear", BroadcastLinear, 0, false, rootEach},
	{Broadcast, "binomial", BroadcastBinomial, 0, false, logarithmic},
	{Broadcast, "two-level", BroadcastTwoLevel, HostMap, false, nil},
	{Broadcast, "scatter-all-gather", BroadcastScatterAllGather, 0, false, scatterRing},
	{Broadcast, "chain", BroadcastChain, 0, false, pipeline},

	{Reduce, "linear", ReduceLinear, 0, true, rootEach},
	{Reduce, "binomial", ReduceBinomial, 0, false, logarithmic},
	{Reduce, "two-level", ReduceTwoLevel, HostMap | OrderedHosts, false, nil},
	{Reduce, "rabenseifner", ReduceRabenseifner, 0, false, halvingGather},
	{Reduce, "pairwise", ReducePairwise, 0, true, twice(eachBlock)},
	{Reduce, "chain", ReduceChain, Commuting, false, pipeline},

	{AllReduce, "linear", AllReduceLinear, 0, true, twice(rootEach)},
	{AllReduce, "recursive-doubling", AllReduceRecursiveDoubling, 0, false, doubling},
	{AllReduce, "reduce-broadcast", AllReduceReduceBroadcast, 0, false, twice(logarithmic)},
	{AllReduce, "two-level", AllReduceTwoLevel, HostMap | OrderedHosts, false, nil},
	{AllReduce, "rabenseifner", AllReduceRabenseifner, 0, false, halvingDoubling},
	{AllReduce, "pairwise", AllReducePairwise, 0, true, twice(eachBlock)},
	{AllReduce, "ring", AllReduceRing, Commuting, false, twice(eachBlock)},
	{AllReduce, "chunked-ring", AllReduceChunkedRing, Commuting, false, chunkedRing},

	{Gather, "binomial", GatherBinomial, PackedBlocks | EveryCount, false, treeBlocks},
	{Gather, "two-level", GatherTwoLevel, EqualBlocks | HostMap, false, nil},
	{Gather, "linear", GatherLinear, 0, false, eachBlock},

	{Scatter, "binomial", ScatterBinomial, PackedBlocks | EveryCount, false, treeBlocks},
	{Scatter, "two-level", ScatterTwoLevel, EqualBlocks | HostMap, false, nil},
	{Scatter, "linear", ScatterLinear, 0, false, eachBlock},

	{AllGather, "linear", AllGatherLinear, 0, false, turns},
	{AllGather, "gather-broadcast", AllGatherGatherBroadcast, PackedBlocks, false, plus(eachBlock, rootEach)},
	{AllGather, "bruck", AllGatherBruck, 0, false, treeBlocks},
	{AllGather, "recursive-doubling", AllGatherRecursiveDoubling, PackedBlocks, false, doublingBlocks},
	{AllGather, "two-level", AllGatherTwoLevel, PackedBlocks | HostMap | HostRuns, false, nil},
	{AllGather, "neighbor-exchange", AllGatherNeighborExchange, PackedBlocks | EvenSize, false, neighborExchange},
	{AllGather, "direct", AllGatherDirect, 0, false, eachBlock},
	{AllGather, "ring", AllGatherRing, 0, false, eachBlock},

	{ReduceScatter, "reduce-scatter", ReduceScatterReduceScatter, PackedBlocks, true, plus(rootEach, eachBlock)},
	{ReduceScatter, "recursive-halving", ReduceScatterHalving, Commuting | PackedBlocks, false, doublingBlocks},
	{ReduceScatter, "two-level", ReduceScatterTwoLevel, PackedBlocks | HostMap | OrderedHosts, false, nil},
	{ReduceScatter, "pairwise", ReduceScatterPairwise, 0, true, eachBlock},
	{ReduceScatter, "ring", ReduceScatterRing, Commuting, false, eachBlock},

	{AllToAll, "linear", AllToAllLinear, 0, false, turns},
	{AllToAll, "gather-scatter", AllToAllGatherScatter, EqualBlocks, false, twice(rootEach)},
	{AllToAll, "two-level", AllToAllTwoLevel, EqualBlocks | HostMap, false, nil},
	{AllToAll, "bruck", AllToAllBruck, EqualBlocks, false, bruck},
	{AllToAll, "direct", AllToAllDirect, 0, false, eachBlock},
	{AllToAll, "pairwise", AllToAllPairwise, 0, false, eachBlock},

	{Scan, "recursive-doubling", ScanRecursiveDoubling, 0, false, logarithmic},
	{Scan, "two-level", ScanTwoLevel, HostMap | HostRuns, false, nil},
	{Scan, "linear", ScanLinear, 0, true, unlessTwo},

	{ExScan, "recursive-doubling", ExScanRecursiveDoubling, 0, false, logarithmic},
	{ExScan, "two-level", ExScanTwoLevel, HostMap | HostRuns, false, nil},
	{ExScan, "linear", ExScanLinear, 0, true, pipeline},

	{NeighborAllGather, "hops", NeighborAllGatherHops, 0, false, nil},
	{NeighborAllToAll, "hops", NeighborAllToAllHops, 0, false, nil},
}
