package bootstrap

// StatsReport is the name under which a rank reports its RankStats, in JSON.
const StatsReport = "stats"

// RankStats counts the operations of a rank, for grun --stats.
type RankStats struct {
	Rank  int              `json:"rank"`
	Peers []PeerStats      `json:"peers"`
	Parks uint64           `json:"parks"`           // times that a wait went to sleep
	Notes map[string]int64 `json:"notes,omitempty"` // the program's own numbers
	// Quarantined is the number of bytes of the heap that calls which ended early gave
	// up and which are still not free.
	Quarantined int64 `json:"quarantined,omitempty"`
}

// PeerStats counts the operations of a rank on one peer.
type PeerStats struct {
	Peer     int    `json:"peer"`
	Provider string `json:"provider"`
	Ops      uint64 `json:"ops"`
	Bytes    uint64 `json:"bytes"`
	Staged   uint64 `json:"staged"`  // bytes that the rank copied on their way, as it posted them or by a stage
	Sends    uint64 `json:"sends"`   // two-sided work requests
	Stalls   uint64 `json:"stalls"`  // waits for room in a queue
	Retries  uint64 `json:"retries"` // rounds that an emulated atomic lost
}
